"""Scanner of grammar text: space and comments, names, escapes, quoted text and numbers."""

from __future__ import annotations

import math
import re
from typing import NoReturn

from uncaged_dispatcher.grammar.limits import MAX_NESTING
from uncaged_dispatcher.grammar.numbers import MAX_WHOLE, whole
from uncaged_dispatcher.grammar.problems import GrammarError, Problem
from uncaged_dispatcher.grammar.syntax import SourceText

SPACES = " \t\v\f\n\r\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""Space characters of the language, for a set of a regular expression."""
LINE_ENDS = "\n\r\u2028\u2029"

_SPACE = re.compile(rf"[{SPACES}]++|//[^{LINE_ENDS}]*+|/\*(?s:.*?)\*/")
_NAME = re.compile(r"[^\W\d][\w$]*+|\$[\w$]*+")
_DIGITS = re.compile(
    r"0[xX][0-9a-fA-F]++|0[oO][0-7]++|0[bB][01]++|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
)
_QUOTED_RUN = re.compile(r"[^\\\"'`$\n\r]++")
_HEX = {length: re.compile(rf"[0-9a-fA-F]{{{length}}}") for length in (2, 4)}
_BRACED = re.compile(r"\{([0-9a-fA-F]++)\}")
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "v": "\v", "t": "\t", "b": "\b", "f": "\f"}
_BASES = {"x": 16, "o": 8, "b": 2}


class Scanner:
    """A place in a grammar's text that only moves forward; every failure is a `GrammarError`."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.text = source.text
        self.at = 0
        self._nesting = 0

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise an error at an offset; by default at the present one."""
        raise GrammarError(
            [Problem.at(self.source, self.at if at is None else at, message)]
        ) from None

    def fail_expecting(self, expected: str) -> NoReturn:
        """Raise an error that names the present character and *expected*."""
        found = repr(self.text[self.at]) if self.at < len(self.text) else "the end of the file"
        self.fail(f"unexpected {found}: {expected}")

    @property
    def ended(self) -> bool:
        """Return whether nothing is left."""
        return self.at >= len(self.text)

    def skip_space(self) -> bool:
        """Skip space and comments; return whether there were any."""
        begin = self.at
        while found := _SPACE.match(self.text, self.at):
            self.at = found.end()
        if self.text.startswith("/*", self.at):
            self.fail("this comment has no end: '*/' is missing")
        return self.at > begin

    def sees(self, token: str) -> bool:
        """Return whether *token* is next."""
        return self.text.startswith(token, self.at)

    def take(self, token: str) -> bool:
        """Skip *token* and the space after it if it is next; return whether it was."""
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        self.skip_space()
        return True

    def expect(self, token: str, where: str) -> None:
        """Skip *token* and the space after it, or fail."""
        if not self.take(token):
            self.fail_expecting(f"{token!r} is expected {where}")

    def peek_name(self) -> str:
        """Return the name that is next, or nothing."""
        found = _NAME.match(self.text, self.at)
        return found.group() if found else ""

    def name(self, expected: str) -> str:
        """Return the name that is next and skip it with the space after it, or fail."""
        text = self.peek_name()
        if not text:
            self.fail_expecting(expected)
        self.at += len(text)
        self.skip_space()
        return text

    def enter(self, what: str) -> None:
        """Count one more level of nesting, or fail at the limit."""
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self.fail(f"{what} are nested more than {MAX_NESTING} deep")

    def leave(self) -> None:
        """Count one level of nesting less."""
        self._nesting -= 1

    def escape(self) -> str:
        """Return the character of an escape and skip it; the present character is its backslash.

        A backslash before a line's end gives nothing: the line goes on.
        """
        self.at += 1
        if self.ended:
            self.fail("a character is missing after '\\'")
        mark = self.text[self.at]
        self.at += 1
        if mark in LINE_ENDS:
            if mark == "\r" and self.sees("\n"):
                self.at += 1
            return ""
        if mark == "x":
            return chr(self._code(2))
        if mark == "u":
            return self._unicode()
        return _ESCAPES.get(mark, mark)

    def _code(self, length: int) -> int:
        digits = _HEX[length].match(self.text, self.at)
        if digits is None:
            self.fail(f"{length} hexadecimal digits are expected in this escape")
        self.at = digits.end()
        return int(digits.group(), 16)

    def _unicode(self) -> str:
        begin = self.at
        if self.sees("{"):
            braced = _BRACED.match(self.text, self.at)
            if braced is None:
                self.fail("an escape by code is written \\u{1F600}")
            digits = braced[1].lstrip("0")
            if len(digits) > 6 or int(digits or "0", 16) > 0x10FFFF:
                self.fail("there is no character of this code; the last is \\u{10FFFF}")
            self.at = braced.end()
            code = int(digits or "0", 16)
        else:
            code = self._code(4)
            if 0xD800 <= code < 0xDC00 and self.sees("\\u"):
                high, place = code, self.at
                self.at += 2
                low = self._code(4) if _HEX[4].match(self.text, self.at) else 0
                if 0xDC00 <= low < 0xE000:
                    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
                self.at = place
        if 0xD800 <= code < 0xE000:
            self.fail("this escape is half of a surrogate pair", begin)
        return chr(code)

    def quoted(self) -> str:
        """Return a quoted text and skip it; the present character is its quote."""
        begin, quote = self.at, self.text[self.at]
        self.at += 1
        pieces: list[str] = []
        while True:
            if run := _QUOTED_RUN.match(self.text, self.at):
                pieces.append(run.group())
                self.at = run.end()
            if self.ended or self.text[self.at] in "\n\r":
                line, column = self.source.position(begin)
                self.fail(
                    f"the text from line {line}, column {column} has no end: {quote} is missing"
                )
            if self.text[self.at] == quote:
                self.at += 1
                return "".join(pieces)
            pieces.append(self.escape() if self.sees("\\") else self._character())

    def template_text(self) -> str:
        """Return the text of a template literal up to its end or its next ``${``."""
        begin = self.at
        pieces: list[str] = []
        while not self.ended and not self.sees("`") and not self.sees("${"):
            if run := _QUOTED_RUN.match(self.text, self.at):
                pieces.append(run.group())
                self.at = run.end()
            elif self.sees("\\"):
                pieces.append(self.escape())
            else:
                pieces.append(self._character())
        if self.ended:
            line, column = self.source.position(begin)
            self.fail(f"the template from line {line}, column {column} has no end: ` is missing")
        return "".join(pieces)

    def _character(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def number(self) -> int | float | None:
        """Return the number without a sign that is next and skip it, or nothing."""
        found = _DIGITS.match(self.text, self.at)
        if found is None:
            return None
        text = found.group()
        value: int | float
        if text[1:2].lower() in _BASES:
            value = int(text[2:], _BASES[text[1].lower()])
            if value > MAX_WHOLE:
                self.fail(f"a number in another base is at most {MAX_WHOLE}")
        else:
            value = whole(float(text))
            if value == math.inf:
                self.fail("this number is too large")
        self.at = found.end()
        if self.peek_name():
            self.fail_expecting("a number ends before a letter")
        return value
