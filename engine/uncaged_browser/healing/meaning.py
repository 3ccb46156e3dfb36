"""Whether a control still promises what it promised, by its names."""

from __future__ import annotations

from collections.abc import Iterable

from .lexicon import GRAVE, actions_of

__all__ = ["other_action"]


def other_action(before: Iterable[str], after: Iterable[str]) -> str | None:
    """Return how the names of a control promise another action than its former names, as in ``one
    TEXT the other``; None if they may promise the same.
    """
    promised = frozenset().union(*map(actions_of, before))
    promises = frozenset().union(*map(actions_of, after))
    if ("not" in promised) is not ("not" in promises):
        return "is a negation of"
    if grave := (promises & GRAVE) - promised:
        return f"does another thing: {', '.join(sorted(grave))}, not"
    if promised - {"not"} and promises - {"not"} and not promised & promises:
        return "does another thing than"
    return None
