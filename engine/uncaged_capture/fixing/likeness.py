"""Likeness of names: which of several new names is the old one's."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rapidfuzz import fuzz

__all__ = ["likely", "likeness"]

LIKELY = 0.72
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
SHORTEST_PREFIX = 3
PREFIXES = frozenset(
    [
        "min",
        "max",
        "avg",
        "mean",
        "old",
        "new",
        "prev",
        "previous",
        "last",
        "next",
        "first",
        "is",
        "has",
        "no",
        "not",
        "num",
        "raw",
        "default",
    ]
)
SUFFIXES = frozenset(
    [
        "id",
        "ids",
        "type",
        "kind",
        "unit",
        "units",
        "currency",
        "count",
        "url",
        "uri",
        "link",
        "format",
        "formatted",
        "code",
        "status",
        "label",
        "text",
        "html",
        "date",
        "time",
        "min",
        "max",
        "avg",
        "old",
        "prev",
        "previous",
        "raw",
        "error",
    ]
)
VOWELS = frozenset("aeiou")


def likely(old: str, new: Iterable[str]) -> tuple[str, ...]:
    """Return those of *new* that are like the old name, the most alike first; only those with the
    same letters, if there are any.
    """
    scored = sorted(((likeness(old, one), one) for one in new), reverse=True)
    if scored and scored[0][0] == 1.0:
        return tuple(one for score, one in scored if score == 1.0)
    return tuple(one for score, one in scored if score >= LIKELY)


def likeness(old: str, new: str) -> float:
    """Return how alike two names are, from 0 to 1: spelling of words, abbreviations, typing."""
    before, after = words_of(old), words_of(new)
    if not before or not after:
        return 0.0
    if "".join(before) == "".join(after):
        return 1.0
    if len(before) == len(after) and all(map(_is_short_for, before, after)):
        return 0.95
    shorter, longer = sorted((before, after), key=len)
    if _is_qualified(before, after):
        return 0.0
    if len(shorter) < len(longer) and all(
        any(_is_short_for(a, b) for b in longer) for a in shorter
    ):
        return 0.85
    return fuzz.ratio(" ".join(before), " ".join(after)) / 100 * 0.9


def _is_qualified(before: list[str], after: list[str]) -> bool:
    """Whether a word makes one of two names another thing: ``price``, ``price_unit``."""
    more = set(after) ^ set(before)
    return (after[0] != before[0] and bool(more & PREFIXES & {after[0], before[0]})) or (
        after[-1] != before[-1] and bool(more & SUFFIXES & {after[-1], before[-1]})
    )


def words_of(name: str) -> list[str]:
    """Return the words of a name in lower case: ``userName`` and ``user_name`` have the same."""
    return [word.lower() for word in WORDS.findall(name)]


def _is_short_for(one: str, other: str) -> bool:
    """Whether one word is the other, the start of it, or some of its letters from the first on
    (``amt`` for ``amount``).
    """
    shorter, longer = sorted((one, other), key=len)
    if one == other:
        return True
    if len(shorter) < SHORTEST_PREFIX or shorter[0] != longer[0]:
        return False
    letters = iter(longer)
    return longer.startswith(shorter) or (
        not set(shorter[1:]) & VOWELS and all(letter in letters for letter in shorter)
    )
