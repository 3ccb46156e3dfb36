"""Likeness of texts of user interfaces, from 0 to 1."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from rapidfuzz import fuzz

from .lexicon import QUALIFIERS, actions_of, concepts, words_of

__all__ = ["CONTAINED", "likeness", "nearest_likeness", "same_text"]

SAME_WORD = 0.84
"""Likeness of two words from which on they are one, perhaps inflected."""
STEM = 3
"""Letters with which inflected words begin alike; ``install`` and ``uninstall`` do not."""
MADE = frozenset({"new", "neues"})
KEPT_PAIRS = 1 << 15
"""Pairs of texts that are compared once: neighbours on a page have the same texts around them."""
CONTAINED = 0.75
SAME_TEXT = 0.85
CONFLICT = 0.55
"""At most this like are names of which each has a word of its own."""


@lru_cache(maxsize=KEPT_PAIRS)
def likeness(before: str, after: str) -> float:
    """Return how much two names mean the same thing."""
    mine, other = concepts(before), concepts(after)
    if not mine or not other:
        return 1.0 if before.strip() == after.strip() != "" else 0.0
    if mine == other or "".join(mine) == "".join(other):
        return 1.0
    matched = _matched(mine, other)
    dice = 2 * matched / (len(mine) + len(other))
    smaller = min(len(mine), len(other))
    added = (set(words_of(after)) ^ set(words_of(before))) & QUALIFIERS
    if actions_of(before) & actions_of(after):
        added -= MADE  # what is added is new
    if matched < smaller - 0.5 or added:
        return min(CONFLICT, dice)
    return CONTAINED + (1 - CONTAINED) * dice


@lru_cache(maxsize=KEPT_PAIRS)
def same_text(before: str, after: str) -> bool:
    """Whether two texts have nearly the same words, and none has many more."""
    mine, other = concepts(before), concepts(after)
    if not mine or not other:
        return before == after
    return 2 * _matched(mine, other) / (len(mine) + len(other)) >= SAME_TEXT


def nearest_likeness(before: Iterable[str], after: Iterable[str]) -> float:
    """Return the likeness of the two names that are most alike."""
    others = tuple(after)
    return max((likeness(one, other) for one in before for other in others), default=0.0)


def _matched(mine: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Return how many words of both are the same, each counted once."""
    left = list(other)
    found = 0.0
    for word in mine:
        best = max(left, key=lambda one: _same_word(word, one), default="")
        value = _same_word(word, best) if best else 0.0
        if value:
            found += value
            left.remove(best)
    return found


def _same_word(one: str, other: str) -> float:
    if one == other:
        return 1.0
    if min(len(one), len(other)) < 4 or one[:STEM] != other[:STEM]:
        return 0.0
    value = fuzz.ratio(one, other) / 100
    return value if value >= SAME_WORD else 0.0
