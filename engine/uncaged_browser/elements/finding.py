"""Search for the element that a target names: the first alternative that matches exactly one
visible element.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..problems import BrowserProblem
from .targets import ElementName, ElementTarget

if TYPE_CHECKING:
    from playwright.async_api import FrameLocator, Locator, Page

__all__ = ["NEAR", "Found", "find_element", "locate"]

NEAR = Path(__file__).with_name("near.js").read_text("utf-8")
"""Function of a page that chooses elements by the texts near them."""
PAUSE_S = 0.05
GRACE_S = 0.3
"""A later alternative is taken only if no earlier one matches within this time."""
MAX_CANDIDATES = 5
REVEALS, REVEAL_S = 3, 3.0
"""So many times, for so long, the mouse is moved to make an element visible."""
SURROUNDINGS = """element => {
  const above = node => node.assignedSlot || node.parentElement || node.getRootNode().host || null;
  let holder = above(element);
  while (holder && !holder.checkVisibility()) holder = above(holder);
  if (!holder || ['HTML', 'BODY', 'MAIN'].includes(holder.tagName)) return null;
  return [...holder.querySelectorAll('*')].find(one => one.checkVisibility() && one.innerText?.trim()) || holder;
}"""
LISTS: tuple[Literal["combobox", "listbox"], ...] = ("combobox", "listbox")
DESCRIBE = """element => {
  const text = (element.getAttribute('aria-label') || element.innerText || element.value || '')
    .trim().replace(/\\s+/g, ' ').slice(0, 60);
  const id = element.id ? '#' + element.id : '';
  return '<' + element.tagName.toLowerCase() + id + '>' + (text ? ' "' + text + '"' : '');
}"""


class Found:
    """The element of a target. index: of the alternative that matched."""

    __slots__ = ("index", "locator")

    def __init__(self, locator: Locator, index: int) -> None:
        self.locator = locator
        self.index = index


def locate(
    scope: Page | FrameLocator, alternative: ElementName, *, unlisted: bool = False
) -> Locator:
    """Return the locator of an alternative; it may match hidden elements and several. unlisted:
    also those that are no part of the accessibility tree by now.
    """
    match alternative.way:
        case "ref":
            raise BrowserProblem(
                "unsupported", "a reference of a page view is the only alternative"
            )
        case "role":
            role: Any = alternative.value
            name = alternative.name
            found = (
                scope.get_by_role(role, include_hidden=unlisted)
                if name is None
                else scope.get_by_role(
                    role, name=name, exact=alternative.exact, include_hidden=unlisted
                )
            )
        case "label":
            found = _labelled(scope, alternative)
        case "placeholder":
            found = scope.get_by_placeholder(alternative.value, exact=alternative.exact)
        case "testId":
            found = scope.get_by_test_id(alternative.value)
        case "text":
            found = scope.get_by_text(alternative.value, exact=alternative.exact)
        case "css":
            found = scope.locator(f"css={alternative.value}")
        case "xpath":
            found = scope.locator(f"xpath={alternative.value}")
    return found


def _labelled(scope: Page | FrameLocator, alternative: ElementName) -> Locator:
    """Return the locator of a labelled control. A label around a list has the texts of its options
    in it, which are no part of the control's accessible name.
    """
    name, exact = alternative.value, alternative.exact
    found = scope.get_by_label(name, exact=exact)
    for role in LISTS:
        found = found.or_(scope.get_by_role(role, name=name, exact=exact))
    return found


async def find_element(
    page: Page,
    target: ElementTarget,
    timeout_s: float,
    *,
    hidden: bool = False,
    unlisted: bool = False,
    reveal: bool = False,
) -> Found:
    """Wait for the element of a target.

    Args:
        hidden: an invisible element is taken, too, such as the input of an upload. unlisted: also
            one that is no part of the accessibility tree, by its role.
        reveal: the mouse may be moved to what is around an invisible element, as in menus.
    Raises:
        BrowserProblem: none is there in time, or each alternative that matches has several.
    """
    end_s = time.monotonic() + timeout_s
    scope: Page | FrameLocator = page
    for frame in target.frames:
        found = await _wait(scope, frame, end_s, hidden=False, reveal=False)
        scope = found.locator.content_frame
    return await _wait(
        scope, target.alternatives, end_s, hidden=hidden, unlisted=unlisted, reveal=reveal
    )


async def _wait(
    scope: Page | FrameLocator,
    alternatives: tuple[ElementName, ...],
    end_s: float,
    *,
    hidden: bool,
    unlisted: bool = False,
    reveal: bool,
) -> Found:
    grace_end_s = min(end_s, time.monotonic() + GRACE_S)
    reveals = REVEALS if reveal else 0
    while True:
        several: list[Locator] = []
        for index, alternative in enumerate(alternatives):
            locator, count = await _matches(scope, alternative, hidden=hidden, unlisted=unlisted)
            if count > 1:
                several.append(locator)
            if count == 1 and (index == 0 or time.monotonic() >= grace_end_s):
                return Found(locator, index)
            if count == 1:
                break  # an earlier one may still appear
        now_s = time.monotonic()
        if now_s >= end_s:
            raise await _problem(alternatives, several)
        if reveals and not several and now_s >= grace_end_s:
            reveals -= 1
            await _reveal(scope, alternatives)
        await asyncio.sleep(min(PAUSE_S, max(0.0, end_s - now_s)))


async def _matches(
    scope: Page | FrameLocator, alternative: ElementName, *, hidden: bool, unlisted: bool = False
) -> tuple[Locator, int]:
    """Return the locator of an alternative, and how many elements it matches. Where invisible
    elements are taken, too, visible ones are preferred.
    """
    every = locate(scope, alternative, unlisted=unlisted)
    shown = every.filter(visible=True)
    for locator in (shown, every) if hidden else (shown,):
        if alternative.near:
            found, count = await _nearest(locator, alternative)
        else:
            found = locator if alternative.nth is None else locator.nth(alternative.nth)
            count = await found.count()
        if count:
            break
    return found, count


async def _reveal(scope: Page | FrameLocator, alternatives: tuple[ElementName, ...]) -> None:
    """Move the mouse to the visible surroundings of an element that is invisible."""
    from playwright.async_api import Error

    with suppress(Error):
        for alternative in alternatives:
            locator, count = await _matches(scope, alternative, hidden=True, unlisted=True)
            if count != 1 or await locator.is_visible():
                continue
            around = (await locator.evaluate_handle(SURROUNDINGS)).as_element()
            if around is not None:
                await around.hover(timeout=REVEAL_S * 1000)
                return


async def _nearest(locator: Locator, alternative: ElementName) -> tuple[Locator, int]:
    """Return the match that the texts are nearest to, and how many such matches there are."""
    found, total = await _nearest_now(locator, alternative)
    if found:  # a page that draws its rows anew would have others at these places
        await asyncio.sleep(PAUSE_S)
        if await _nearest_now(locator, alternative) != (found, total):
            return locator, 0
    if alternative.nth is not None:
        found = found[alternative.nth : alternative.nth + 1]
    return (locator.nth(found[0]), 1) if len(found) == 1 else (locator, len(found))


async def _nearest_now(locator: Locator, alternative: ElementName) -> tuple[list[int], int]:
    """Return the places of the matches that the texts are nearest to, and the number of all."""
    found: tuple[list[int], int] = await locator.evaluate_all(
        f"(elements, [texts, exact]) => [({NEAR})(elements, texts, exact), elements.length]",
        [list(alternative.near), alternative.exact],
    )
    return found[0], found[1]


async def _problem(alternatives: tuple[ElementName, ...], several: list[Locator]) -> BrowserProblem:
    names = " | ".join(map(str, alternatives))
    if not several:
        return BrowserProblem("not-found", f"no visible element is {names}")
    count = await several[0].count()
    first = several[0]
    candidates = [
        str(await first.nth(number).evaluate(DESCRIBE))
        for number in range(min(count, MAX_CANDIDATES))
    ]
    return BrowserProblem(
        "ambiguous",
        f"{count} visible elements are {names}: {', '.join(candidates)}",
        candidates=candidates,
    )
