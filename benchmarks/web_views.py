"""Page views of pages that sites could have: their size against the HTML, and whether each heading,
text and operable element is in the view or in a part that one further call shows.

What a page shows is read from its document by a script of its own (`pages/shown.js`), which knows
nothing of page views. A token is four characters.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncaged_browser.driving.context import DrivenContext
from uncaged_browser.operations import ReadView

from .bench import Bench, Figure
from .pages.trial import fresh_context
from .pages.views import VIEW_PAGES, view_page
from .table import Row
from .web_bench import bare_browser

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

__all__ = ["FIGURES", "ViewedPage", "view_pages"]

SHOWN = (Path(__file__).parent / "pages" / "shown.js").read_text("utf-8")
CHARACTERS_PER_TOKEN = 4
REFERENCE = re.compile(r"\[ref=(e\d+)\]")
MORE = re.compile(r"\[more=(e\d+)\]")
SHARE = 5
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewedPage:
    """html, view: tokens. calls: parts that are one call away. shown: headings, texts and operable
    elements of the page; missing: those that are neither in the view nor one call away.
    """

    number: int
    html: int
    view: int
    calls: int
    shown: int
    missing: tuple[str, ...]


async def view_pages(browser: Browser, numbers: Sequence[int]) -> list[ViewedPage]:
    """View pages by their numbers."""
    found = []
    for number in numbers:
        async with fresh_context(browser) as context:
            page = await context.context.new_page()
            await page.set_content(view_page(number))
            found.append(await _viewed(context, page, number))
    return found


async def _viewed(context: DrivenContext, page: Page, number: int) -> ViewedPage:
    html = await page.evaluate("document.documentElement.outerHTML.length")
    view = await _text(context, "")
    parts = [await _text(context, reference) for reference in MORE.findall(view)]
    whole = " ".join(" ".join([view, *parts]).split())
    known = [
        await (await context.references.element(page, reference)).element_handle()
        for reference in dict.fromkeys(REFERENCE.findall(whole))
    ]
    shown: dict[str, Any] = await page.evaluate(SHOWN, known)
    absent = [f"heading {one!r}" for one in shown["headings"] if one not in whole]
    absent += [f"text {one!r}" for one in shown["texts"] if one not in whole]
    absent += [f"element {one!r}" for one in shown["missing"]]
    return ViewedPage(
        number=number,
        html=html // CHARACTERS_PER_TOKEN,
        view=len(view) // CHARACTERS_PER_TOKEN,
        calls=len(parts),
        shown=len(shown["headings"]) + len(shown["texts"]) + shown["operable"],
        missing=tuple(absent),
    )


async def _text(context: DrivenContext, more: str) -> str:
    answer: Any = await context.perform(ReadView(more=more, timeout_s=TIMEOUT_S))
    return str(answer["text"])


def views(bench: Bench) -> Sequence[Row]:
    """Compare views with what the pages show. Quick: a fifth of the pages."""
    numbers = range(0, VIEW_PAGES, SHARE) if bench.quick else range(VIEW_PAGES)
    with bare_browser() as bare:
        found = bare.run(view_pages(bare.browser, numbers))
    for one in found:
        for text in one.missing[:10]:
            sys.stderr.write(f"page {one.number}: {text} is not in the view\n")
    missing, shown = sum(len(one.missing) for one in found), sum(one.shown for one in found)
    return (
        Row(
            figure="web-views",
            title=f"tokens of a page view against those of its HTML, worst of {len(found)} pages",
            values=(max(one.view / one.html for one in found),),
            unit="×",
            baseline=f"{sum(one.html for one in found) // len(found):,} tokens of HTML on average; a token is"
            f" {CHARACTERS_PER_TOKEN} characters",
            reach=0.1,
            missed="short pages get a view of a fixed least length",
        ),
        Row(
            figure="web-views",
            title="headings, texts and operable elements neither in it nor one call away",
            values=(missing,),
            unit="",
            baseline=f"{shown:,} on the pages; {max(one.calls for one in found)} parts at most to ask for",
            reach=0,
            exact=True,
            missed="the pages are listed above",
        ),
    )


FIGURES = (Figure(name="web-views", measure=views),)
