"""Reading aloud: what is read, and a browser without a voice."""

from __future__ import annotations

import pytest
from testbed.browser_harness import BrowserHarness
from uncaged_browser.driving.speaking import MAX_CHARACTERS, PART_CHARACTERS, spoken_parts
from uncaged_browser.operations import Speak
from uncaged_browser.problems import BrowserProblem


def test_a_text_is_read_line_by_line() -> None:
    """Each line is one part; a long one is cut between words; a very long text is cut."""
    assert spoken_parts("Otters\n\n  sleep in kelp. \n", {}) == ["Otters", "  sleep in kelp."]
    parts = spoken_parts("kelp " * 1_000, {})
    assert " ".join(parts) == ("kelp " * 1_000).strip()
    assert max(map(len, parts)) <= PART_CHARACTERS
    assert sum(map(len, spoken_parts("k" * (MAX_CHARACTERS + 1), {}))) == MAX_CHARACTERS


def test_a_secret_that_has_another_in_it_is_not_read_in_part() -> None:
    """The longest value is replaced first."""
    secrets = {"kelp": "PLANT", "kelp-bed": "PLACE"}
    assert spoken_parts("kelp-bed, kelp", secrets) == ["secret:PLACE, secret:PLANT"]


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_a_browser_without_a_voice_says_so(harness: BrowserHarness) -> None:
    """The error says that the browser has no voice."""

    async def run() -> None:
        async with harness.context() as context:
            page = await context.context.new_page()
            await page.set_content("<p>Otters sleep in kelp.")
            with pytest.raises(BrowserProblem, match="no voice of its own") as caught:
                await context.perform(Speak())
            assert caught.value.kind == "unsupported"

    harness.run(run())
