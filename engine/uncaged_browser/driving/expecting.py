"""Comparison of a page with the expectation of a step. It waits until the page fits or the time is
over, because a page often changes after the answer of an operation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..expectations import PageExpectation

if TYPE_CHECKING:
    from playwright.async_api import Page

__all__ = ["drift_of"]

WAIT_S = 5.0
"""Longest wait for a page to fit."""
PAUSE_S = 0.05
MAX_HEADINGS = 20
SHOWN_CHARACTERS = 4_000
HEADINGS = """limit => [...document.querySelectorAll('h1,h2,h3,h4,h5,h6,[role=heading]')]
  .filter(one => one.checkVisibility()).slice(0, limit).map(one => one.innerText.trim())"""


async def drift_of(
    current: Callable[[], Page], expected: PageExpectation
) -> list[dict[str, object]]:
    """Return the differences that are left when the time is over.

    Args:
        current: returns the page; it changes when the operation opens a tab.
    """
    end_s = time.monotonic() + WAIT_S
    while True:
        page = current()
        found = await _differences(page, expected)
        if not found:
            break
        if time.monotonic() >= end_s:
            return found
        await asyncio.sleep(PAUSE_S)
    return [] if expected.view is None else await _difference_of_view(page, expected.view, end_s)


async def _differences(page: Page, expected: PageExpectation) -> list[dict[str, object]]:
    from playwright.async_api import Error

    title, headings = "", ()
    try:
        if expected.title is not None:
            title = await page.title()
        if expected.heading is not None:
            headings = tuple(await page.evaluate(HEADINGS, MAX_HEADINGS))
    except Error:  # the page is being replaced by another
        pass
    return expected.differences(page.url, title, headings)


async def _difference_of_view(page: Page, view: str, end_s: float) -> list[dict[str, object]]:
    from playwright.async_api import Error, expect

    body = page.locator("body")
    timeout_ms = max(100.0, (end_s - time.monotonic()) * 1000)
    try:
        await expect(body).to_match_aria_snapshot(view, timeout=timeout_ms)
    except (AssertionError, Error):
        try:
            found = await body.aria_snapshot(timeout=timeout_ms)
        except Error:
            found = ""
        return [{"what": "view", "expected": view, "found": found[:SHOWN_CHARACTERS]}]
    return []
