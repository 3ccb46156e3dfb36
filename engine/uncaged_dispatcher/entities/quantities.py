"""Sizes in bytes and durations in seconds, from a number and a unit."""

from __future__ import annotations

import re

from ..grammar.entities import cardinal
from ..grammar.syntax import UNDEFINED

_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_PREFIXES = {"kilo": "k", "mega": "m", "giga": "g", "tera": "t"}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 604_800),
}
_PART = re.compile(
    r"(?P<number>\d{1,15}(?:[.,]\d{1,9})?|[a-z][a-z -]*?)\s*(?P<unit>[a-z]+)", re.IGNORECASE
)
_MOST_CHARACTERS = 200
"""Longest text of a size or a duration."""
_ARTICLES = {"a": 1, "an": 1, "half a": 0.5, "half an": 0.5}


def size(text: str) -> object:
    """Return the bytes of `5 GB`, `1.5 megabytes` or `64 KiB`."""
    found = _PART.fullmatch(text.strip()) if len(text) <= _MOST_CHARACTERS else None
    if found is None:
        return UNDEFINED
    number, factor = _number(found["number"]), _bytes(found["unit"].lower())
    return UNDEFINED if number is None or factor is None else round(number * factor)


def duration(text: str) -> object:
    """Return the seconds of `90 minutes`, `two hours` or `1 hour and 30 minutes`."""
    if len(text) > _MOST_CHARACTERS:
        return UNDEFINED
    total = 0.0
    parts = re.split(r"\s*(?:,|\band\b)\s*", text.strip())
    for part in parts:
        found = _PART.fullmatch(part)
        number = None if found is None else _number(found["number"])
        factor = None if found is None else _SECONDS.get(found["unit"].lower())
        if number is None or factor is None:
            return UNDEFINED
        total += number * factor
    return int(total) if total.is_integer() else total


def _number(text: str) -> float | None:
    words = " ".join(text.lower().split())
    if words in _ARTICLES:
        return _ARTICLES[words]
    if re.fullmatch(r"\d+[.,]\d{1,2}|\d+\.\d+", words):
        return float(words.replace(",", "."))
    found = cardinal(words)
    return float(found) if isinstance(found, int) else None


def _bytes(unit: str) -> int | None:
    """Return the factor of a unit: decimal, or binary for those with an i."""
    for name, letter in _PREFIXES.items():
        if unit.startswith(name) and unit[len(name) :] in ("byte", "bytes"):
            return _DECIMAL[letter]
    if unit in ("b", "byte", "bytes"):
        return 1
    return _BINARY.get(unit[:-1], _DECIMAL.get(unit[:-1])) if unit.endswith("b") else None
