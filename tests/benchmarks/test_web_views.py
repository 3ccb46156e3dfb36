"""Benchmark of page views: a sixth of the pages, and a checker that misses nothing itself."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.pages.trial import fresh_context
from benchmarks.pages.views import VIEW_PAGES, view_page
from benchmarks.web_bench import BareBrowser, bare_browser
from benchmarks.web_views import SHOWN, view_pages

PAGE = """<h1>Ti<b>tle</b></h1><h2 hidden>Not shown</h2><p>Some <em>text</em></p><script>no text</script>
<button>Press</button><a href="/x">Go</a><input aria-label=Field><input type=hidden><select><option>One</select>"""


def test_the_pages_differ() -> None:
    """Each page follows from its number, and is long enough for a view of a tenth."""
    pages = [view_page(number) for number in range(VIEW_PAGES)]
    assert pages == [view_page(number) for number in range(VIEW_PAGES)]
    assert len(set(pages)) == VIEW_PAGES and min(map(len, pages)) > 15_000


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_views_show_what_the_pages_show() -> None:
    """The checker reads what is visible and misses what it is not told of; no page of the sample
    has anything that a view and one further call do not show.
    """

    async def checked(bare: BareBrowser) -> dict[str, Any]:
        async with fresh_context(bare.browser) as context:
            page = await context.context.new_page()
            await page.set_content(PAGE)
            known = [await page.query_selector("button"), await page.query_selector("select")]
            found: dict[str, Any] = await page.evaluate(SHOWN, known)
            return found

    with bare_browser() as bare:
        found = bare.run(checked(bare))
        pages = bare.run(view_pages(bare.browser, range(6)))
    assert found == {
        "headings": ["Title"],
        "texts": ["Ti", "tle", "Some", "text", "Press", "Go"],
        "operable": 4,
        "missing": ["Go", "Field"],
    }
    assert [(one.number, one.missing) for one in pages if one.missing] == []
    assert max(one.view / one.html for one in pages) <= 0.1
