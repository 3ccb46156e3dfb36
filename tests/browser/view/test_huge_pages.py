"""The view of a page that is too large for one snapshot."""

from __future__ import annotations

import re
from typing import Any

import pytest
from testbed.browser_harness import BrowserHarness
from uncaged_browser.driving.context import DrivenContext
from uncaged_browser.operations import read_operation
from uncaged_browser.problems import BrowserProblem

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

HUGE = """<title>Huge</title><h1>Huge</h1><div style="display: flow-root; contain: strict; height: 900px">LINES</div>"""
LINE = "<p><button onclick='document.title = this.textContent'>Item {0}</button>"


def test_a_page_of_very_many_elements_is_viewed_in_parts(harness: BrowserHarness) -> None:
    """The view has the first parts, a reference for the next, and finds an element by words."""

    async def check(context: DrivenContext) -> None:
        async def do(name: str, **body: Any) -> Any:
            return await context.perform(read_operation({"do": name, "timeout_s": 60, **body}))

        page = await context.tabs.new()
        await page.set_content(HUGE.replace("LINES", "".join(map(LINE.format, range(10_000)))))
        first = (await do("view"))["text"]
        assert len(first) < 12_000
        more = re.search(r"\[more=(\w+)\]$", first)
        assert more is not None
        second = (await do("view", more=more[1]))["text"]
        assert 'button "Item 29"' in second
        assert 'button "Item 0"' not in second
        found = (await do("view", words="item 9999"))["text"]
        assert re.fullmatch(r'button "Item 9999" \[ref=\w+\]', found)
        reference = re.search(r'"Item 3" \[ref=(\w+)\]', (await do("view"))["text"])
        assert reference is not None
        await do("click", target={"ref": reference[1]})
        assert (await do("address"))["title"] == "Item 3"
        with pytest.raises(BrowserProblem, match="the page has no 'absent'"):
            await do("view", words="absent")

    async def run() -> None:
        async with harness.context() as context:
            await check(context)

    harness.run(run())
