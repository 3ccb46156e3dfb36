"""Words of a text and of names, and their stems."""

from __future__ import annotations

import re
from collections.abc import Iterable

WORD = re.compile(r"[^\W\d_]{2,}")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SUFFIXES = ("ation", "ing", "ies", "ed", "es", "ly", "er", "s", "e", "y")


def words_of(text: str) -> Iterable[str]:
    """Return the words of *text* in lower case; names are split at underscores and capitals."""
    return dict.fromkeys(word.lower() for word in WORD.findall(CAMEL.sub(" ", text)))


def stems_of(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words_of(text))


def stem(word: str) -> str:
    """Return *word* without its ending, roughly: "pages", "page" and "paging" have one stem."""
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word.removesuffix(suffix)
    return word


def same_stem(left: str, right: str) -> bool:
    """Return whether two stems are equal, or a long one begins with the other."""
    short, long = sorted((left, right), key=len)
    return left == right or (len(short) >= 5 and long.startswith(short))
