"""Operations of a recipe on a page whose elements may be others by now: performed as they are
written, else with what a search of the page finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..operations import Operation
from ..problems import BrowserProblem
from .healed import HealedTarget, Healing, with_healed
from .search import FIND_S, MISSING, HealingResult, Search, run_search
from .sought import HEALED

__all__ = ["Rejected", "perform_healed", "searched", "with_candidate"]

Look = Callable[[Operation], object]
"""Performs an operation that only reads, or raises a `BrowserProblem`."""
Rejected = Callable[[Sequence[Healing]], bool]
"""Tells whether a person decided against one of these healings."""


def perform_healed(
    operation: Operation,
    body: Mapping[str, object],
    *,
    perform: Callable[[Mapping[str, object]], Any],
    search: Callable[[], HealingResult],
    use: Callable[[Sequence[HealedTarget]], object],
) -> Any:
    """Perform an operation of a recipe; if its element is not found, with the one that a search
    finds. Return its answer.

    Args:
        use: called with the new targets before they are used.
    Raises:
        BrowserProblem: it failed; the message has the candidate, if there is one.
    """
    if not isinstance(operation, HEALED):
        return perform(body)
    try:
        return perform({**body, "find_s": min(FIND_S, operation.timeout_s)})
    except BrowserProblem as exc:
        if exc.kind not in MISSING:
            raise
    found = search()
    if found.healed:
        use(found.healed)
        return perform(with_healed(operation, found.healed))
    try:
        return perform(body)  # it may appear in the rest of the time
    except BrowserProblem as exc:
        raise with_candidate(exc, found) from exc


def searched(search: Search, look: Look, is_rejected: Rejected) -> HealingResult:
    """Return what a search finds; an element that a person rejected is a candidate only."""
    found: HealingResult = run_search(search, look)
    if found.healed and is_rejected(found.healed):
        return HealingResult(reason="a person rejected it", candidate=found.healed[0].after)
    return found


def with_candidate(missing: BrowserProblem, found: HealingResult) -> BrowserProblem:
    """Return the problem of a missing element with the one that was found and not used, if there is
    one; a problem of another kind as it is.
    """
    after = [one.after for one in found.healed] or [found.candidate]
    if missing.kind not in MISSING or not any(after):
        return missing
    why = f" ({found.reason})" if found.reason else ""
    return BrowserProblem(
        "not-found", f"{missing}; the nearest element is {after[0]}{why}", candidates=after
    )
