"""What a control promises by its name, before it is clicked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ..elements.finding import Found
from ..elements.targets import ElementName
from ..healing.meaning import other_action
from ..problems import BrowserProblem

__all__ = ["check_action"]

PROGRAM_MARKS = frozenset({"testId", "css", "xpath"})
NAME_TIMEOUT_MS = 1000
NAME = """element => (element.getAttribute('aria-label')
  || (element.getAttribute('aria-labelledby') || '').split(/\\s+/).filter(Boolean)
    .map(id => element.getRootNode().getElementById(id)?.textContent || '').join(' ')
  || element.innerText || (element.tagName === 'INPUT' ? element.value : '') || element.title || '')
  .trim().replace(/\\s+/g, ' ').slice(0, 80)"""
"""Function of a page: the name of a control."""


async def check_action(found: Found, target: Sequence[ElementName]) -> None:
    """Refuse a control that was found by a mark of the page's program, and by its name promises
    another action than the names of its target: a button that says ``Unfollow`` by now.

    Raises:
        BrowserProblem: not-found, so that it may be healed.
    """
    from playwright.async_api import Error

    way = target[found.index].way
    names = [one.name or one.value for one in target if one.way == "text" or one.name]
    # the name of a link is often a page's data
    if way not in PROGRAM_MARKS or not names or any(one.value == "link" for one in target):
        return
    with suppress(Error):  # it is gone: the click says so
        now = str(await found.locator.evaluate(NAME, timeout=NAME_TIMEOUT_MS))
        if now and (other := other_action(names, [now])) is not None:
            text = f'{target[found.index]} is "{now}", which {other} "{names[0]}"'
            raise BrowserProblem("not-found", text)
