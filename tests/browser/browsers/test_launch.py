"""Start of a headless browser."""

from __future__ import annotations

import psutil
import pytest
from testbed.browser_harness import BrowserHarness
from uncaged_browser.browsers.launch import UNUSED_FEATURES

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]


def test_a_context_has_no_pages_of_the_browsers_window(harness: BrowserHarness) -> None:
    """A headless browser loads the pages of its contexts alone; the features that Playwright
    disables stay disabled.
    """

    async def targets() -> list[dict[str, str]]:
        session = await harness.browser.browser.new_browser_cdp_session()
        async with harness.context() as context:
            page = await context.context.new_page()
            await page.goto("data:text/html,<title>Calm</title>")
            found = await session.send("Target.getTargets", {"filter": [{}]})
            return list(found["targetInfos"])

    assert {one["type"] for one in harness.run(targets())} == {"page", "tab"}
    profile = f"--user-data-dir={harness.directory / 'profile'}"
    commands = [one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])]
    [options] = [
        [word for word in command if word.startswith("--disable-features=")]
        for command in commands
        if profile in command and not any(word.startswith("--type=") for word in command)
    ]
    [disabled] = [option.partition("=")[2].split(",") for option in options]
    assert disabled[-len(UNUSED_FEATURES) :] == list(UNUSED_FEATURES)
    assert "HttpsUpgrades" in disabled
