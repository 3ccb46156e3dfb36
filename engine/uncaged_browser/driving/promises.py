"""What a control promises by its name, before it is clicked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from uncaged_bundles.shapes import ShapeError

from ..elements.facts import ElementFacts, read_facts
from ..elements.finding import Found
from ..elements.scripts import script_in
from ..elements.targets import ElementName
from ..healing.meaning import other_action
from ..problems import BrowserProblem

__all__ = ["check_action"]

PROGRAM_MARKS = frozenset({"testId", "css", "xpath"})
READ_TIMEOUT_MS = 1000


async def check_action(
    found: Found, target: Sequence[ElementName], known: ElementFacts | None
) -> None:
    """Refuse a control that was found by a mark of the page's program, and by its name promises
    another action than the names of its target: a button that says ``Unfollow`` by now. The name of
    a link is often a page's data.

    Args:
        known: what was noted with the target, if it was.
    Raises:
        BrowserProblem: not-found, so that it may be healed.
    """
    from playwright.async_api import Error

    names = [one.name or one.value for one in target if one.way == "text" or one.name]
    if target[found.index].way not in PROGRAM_MARKS or not names:
        return
    with suppress(Error, ShapeError):  # it is gone, and the click says so; or the page interferes
        answer = await found.locator.evaluate(script_in("facts.js"), timeout=READ_TIMEOUT_MS)
        now = read_facts(answer, ("facts",))
        shown = now.names if known is not None else (now.name or now.text,)
        if now.role == "link" or not any(shown):
            return
        if (other := other_action((*names, *(known.names if known else ())), shown)) is not None:
            text = f'{target[found.index]} is now {now}, which {other} "{names[0]}"'
            raise BrowserProblem("not-found", text)
