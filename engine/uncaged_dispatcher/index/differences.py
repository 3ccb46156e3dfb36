"""Changed lines between two versions of a text."""

from __future__ import annotations

from collections.abc import Callable


def changed_lines(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Return the parts of both texts that differ, as whole lines. Equal beginnings and ends are
    compared as memory and not parsed, so that one new line among ten thousand costs little.
    """
    shortest = min(len(before), len(after))
    equal = _longest(shortest, lambda count: before[:count] == after[:count])
    begin = before.rfind(b"\n", 0, equal) + 1
    equal = _longest(
        shortest - begin,
        lambda count: before[len(before) - count :] == after[len(after) - count :],
    )
    tail = before[len(before) - equal :]
    if not all(_starts_line(text, len(text) - equal, begin) for text in (before, after)):
        line_end = tail.find(b"\n")
        tail = tail[line_end + 1 :] if line_end >= 0 else b""
    return before[begin : len(before) - len(tail)], after[begin : len(after) - len(tail)]


def _starts_line(text: bytes, place: int, begin: int) -> bool:
    return place == begin or text[place - 1 : place] == b"\n"


def _longest(most: int, holds: Callable[[int], bool]) -> int:
    """Return the greatest count up to *most* that meets a condition which all lesser ones meet."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
