"""Comparison of sentences with shapes, which `shapes` makes; loaded before a worker starts."""

from __future__ import annotations

from collections.abc import Sequence

GAP, NUMBER = "*", "#"
"""Marks, which as punctuation are no words: any words in a shape, and a number among the required
words.
"""


def spaced(words: Sequence[str]) -> str:
    """Return words with a space before and after each."""
    return f" {' '.join(words)} " if words else " "


def first_run(shape: str) -> list[str]:
    """Return the words with which each sentence of a shape begins."""
    return shape.partition(GAP)[0].split()


def fits(shape: str, text: str) -> bool:
    """Return whether a text, made by `spaced`, has a shape."""
    first, *middle = shape.split(GAP)
    if not middle:
        return text == first
    last = middle.pop()
    if not text.startswith(first):
        return False
    # a space ends one run of words and begins the next
    place = max(0, len(first) - 1)
    for run in middle:
        found = text.find(run, place)
        if found < 0:
            return False
        place = found + len(run) - 1
    return not last or (text.endswith(last) and len(text) - len(last) >= place)
