"""Sentence to be matched: checked text, folded case, separators, word boundaries, numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from math import isfinite

from uncaged_bundles.errors import UsageError

from uncaged_dispatcher.grammar.numbers import whole
from uncaged_dispatcher.grammar.syntax import Spacing

MAX_CHARACTERS = 2000
"""Longest sentence."""
FORBIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters that are no space, controls that reorder text, and lone surrogates."""
NUMBER = re.compile(
    r"0o[0-7]+|0x[0-9a-f]+|0b[01]+|[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", re.ASCII
)
"""A number in folded text."""
SPACE = frozenset(
    "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff\u200e\u200f\u061c"
    + "".join(map(chr, range(0x2000, 0x200B)))
)
"""Space, and the marks of direction that keyboards insert."""
WORD_SCRIPTS = frozenset(
    (
        "LATIN",
        "CYRILLIC",
        "GREEK",
        "ARMENIAN",
        "GEORGIAN",
        "HANGUL",
        "ARABIC",
        "HEBREW",
        "SYRIAC",
        "DEVANAGARI",
        "BENGALI",
        "GURMUKHI",
        "GUJARATI",
        "ORIYA",
        "TAMIL",
        "TELUGU",
        "KANNADA",
        "MALAYALAM",
        "SINHALA",
        "ETHIOPIC",
        "MONGOLIAN",
        "COMBINING",
    )
)
"""Scripts that put space between words, by the first word of their characters' names. A combining
mark belongs to the letter before it.
"""
SEPARATOR, WORD, DIGIT, OTHER = "s", "w", "d", "o"
_RUNS = re.compile(r"w+|d+|o")


class SentenceError(UsageError):
    """A sentence that cannot be read: too long, of forbidden characters, or too much work."""


def _kind(character: str) -> str:
    """Return the kind of a character: separator, letter of a word script, digit or other."""
    category = unicodedata.category(character)
    if character in SPACE or category.startswith("P"):
        return SEPARATOR
    if category == "Nd":
        return DIGIT
    first, _, rest = unicodedata.name(character, "").partition(" ")
    if first in ("FULLWIDTH", "HALFWIDTH", "MODIFIER"):
        first = next((word for word in rest.split() if word in WORD_SCRIPTS), "")
    return WORD if first in WORD_SCRIPTS else OTHER


def _fold(character: str) -> str:
    """Return the character without case; the length of a text stays as it is."""
    return next(
        (text for text in (character.casefold(), character.lower()) if len(text) == 1), character
    )


class _Table(dict[int, str]):
    """Translation table of `str.translate` that computes an entry at its first use."""

    def __init__(self, entry: Callable[[str], str]) -> None:
        super().__init__()
        self.entry = entry

    def __missing__(self, code: int) -> str:
        self[code] = text = self.entry(chr(code))
        return text


_KINDS = _Table(_kind)
_FOLDED = _Table(_fold)


def fold(text: str) -> str:
    """Return a text without case; each character keeps its place."""
    return text.translate(_FOLDED)


def kinds(text: str) -> str:
    """Return the kind of each character of a text."""
    return text.translate(_KINDS)


def index_words(folded: str) -> list[str]:
    """Return the units of a text without case: words, rows of digits, other characters alone."""
    return [folded[run.start() : run.end()] for run in _RUNS.finditer(kinds(folded))]


class Sentence:
    """A sentence with what every matcher asks of it.

    ``solid[i]`` is the first place at or after ``i`` that is no separator; ``trimmed[i]`` is the
    place after the last such character before ``i``.
    """

    __slots__ = ("folded", "kinds", "numbers", "size", "solid", "text", "trimmed")

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            raise SentenceError(
                f"the sentence has {len(text)} characters; at most {MAX_CHARACTERS} are read"
            )
        if (wrong := FORBIDDEN.search(text)) is not None:
            raise SentenceError(
                f"the sentence has the character U+{ord(wrong[0]):04X} at place {wrong.start() + 1};"
                " control characters, controls of direction and lone surrogates are not read"
            )
        self.text = text
        self.size = size = len(text)
        self.folded = fold(text)
        self.kinds = kinds(text)
        marks = self.kinds
        self.solid = solid = [size] * (size + 1)
        self.trimmed = trimmed = [0] * (size + 1)
        last = size
        for place in range(size - 1, -1, -1):
            if marks[place] != SEPARATOR:
                last = place
            solid[place] = last
        last = 0
        for place, mark in enumerate(marks, 1):
            if mark != SEPARATOR:
                last = place
            trimmed[place] = last
        self.numbers: dict[int, int] | None = None

    def boundary_after(self, place: int, spacing: Spacing) -> bool:
        """Return whether a word or number may end at a place."""
        if place >= self.size or self.kinds[place] == SEPARATOR:
            return True
        if spacing is Spacing.REQUIRED:
            return False
        return spacing is not Spacing.AUTO or not self.inside_word(place)

    def boundary_before(self, place: int, spacing: Spacing) -> bool:
        """Return whether a word, a number or free text may begin at a place."""
        if spacing is Spacing.AUTO:
            return not self.inside_word(place)
        return (
            spacing is not Spacing.REQUIRED
            or place in (0, self.size)
            or SEPARATOR in self.kinds[place - 1 : place + 1]
        )

    def inside_word(self, place: int) -> bool:
        """Return whether a place divides a word of a word script or a row of digits."""
        return (
            0 < place < self.size
            and (kind := self.kinds[place]) in (WORD, DIGIT)
            and self.kinds[place - 1] == kind
        )

    def starts(self, place: int, spacing: Spacing) -> range:
        """Return the places where the part after *place* may begin, nearest first."""
        return range(place, place + 1 if spacing is Spacing.NONE else self.solid[place] + 1)

    def number_at(self, place: int) -> int | None:
        """Return the end of the number at a place."""
        found = NUMBER.match(self.folded, place)
        return found.end() if found and number_value(found[0]) is not None else None

    def number_places(self) -> dict[int, int]:
        """Return the end of each number by its start; numbers do not overlap."""
        if self.numbers is None:
            found = NUMBER.finditer(self.folded)
            self.numbers = {m.start(): m.end() for m in found if number_value(m[0]) is not None}
        return self.numbers


def number_value(text: str) -> int | float | None:
    """Return the value of a number's folded text; None beyond the range of numbers."""
    try:
        value = float(int(text, 0)) if text[:2] in ("0o", "0x", "0b") else float(text)
    except OverflowError:
        return None
    return whole(value) if isfinite(value) else None
