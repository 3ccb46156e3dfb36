"""Whether a control still promises what it promised, by its names."""

from __future__ import annotations

from collections.abc import Iterable

from .lexicon import GRAVE, actions_of

__all__ = ["other_action", "promised"]


def promised(names: Iterable[str]) -> frozenset[str]:
    """Return the actions that the names of a control promise, with ``not`` for a negation."""
    return frozenset().union(*map(actions_of, names))


def other_action(before: Iterable[str], after: Iterable[str]) -> str | None:
    """Return how the names of a control promise another action than its former names, as in ``one
    TEXT the other``; None if they may promise the same.
    """
    former, now = promised(before), promised(after)
    if ("not" in former) is not ("not" in now):
        return "is a negation of"
    if grave := (now & GRAVE) - former:
        return f"does another thing: {', '.join(sorted(grave))}, not"
    if former - {"not"} and now - {"not"} and not former & now:
        return "does another thing than"
    return None
