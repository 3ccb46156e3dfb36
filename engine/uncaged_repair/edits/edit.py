"""Edit of one span of bytes in one file, with its weight and its severity."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from .spans import SourceFile

Nature = Literal["change", "weaken", "hide", "delete"]
TOKEN = re.compile(r"-?\b\d[\w.]*|\w+|[-+*/%&|^<>=!@:]+|[^\s()]")
NATURES: Sequence[Nature] = ("change", "weaken", "hide", "delete")
"""Order of preference, if several edits pass all tests. One that hides only keeps a test from the
failing line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEdit:
    """Replacement of ``source.data[start:end]``.

    line: the line whose suspiciousness counts. weight: how likely such an edit is a fix, above 0
    and at most 1. traits: the evidence in it.
    """

    path: str
    start: int
    end: int
    before: str
    after: str
    kind: str
    line: int
    weight: float
    nature: Nature = "change"
    traits: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Return how many words and signs are removed and added. Parentheses do not count, and a
        mere exchange counts as 2.
        """
        before, after = TOKEN.findall(self.before), TOKEN.findall(self.after)
        same = sum(
            block.size
            for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        )
        return 2 if sorted(before) == sorted(after) else len(before) + len(after) - 2 * same

    @property
    def grows(self) -> bool:
        return len(TOKEN.findall(self.after)) > len(TOKEN.findall(self.before))

    def apply(self, data: bytes) -> bytes:
        return data[: self.start] + self.after.encode() + data[self.end :]

    def describe(self, source: SourceFile) -> str:
        """Return one line for people: place, kind, and the changed line before and after."""
        if not (self.after and self.before) and (self.after or self.before).endswith(("\n", "\r")):
            return f"{self.path}:{self.line_at(source)} {self.kind}: `{_one_line(self.after or self.before)}`"
        changed = self.apply(source.data)
        low = source.line_starts[self.line_at(source) - 1]
        old = source.data[low : _line_end(source.data, max(self.end, low))].decode()
        new = changed[
            low : _line_end(changed, max(self.start + len(self.after.encode()), low))
        ].decode()
        return f"{self.path}:{self.line_at(source)} {self.kind}: `{_one_line(old)}` → `{_one_line(new)}`"

    def line_at(self, source: SourceFile) -> int:
        """Return the number of the first line that this edit touches."""
        return sum(1 for start in source.line_starts if start <= self.start)


def _line_end(data: bytes, offset: int) -> int:
    found = [
        position
        for position in (data.find(b"\n", offset), data.find(b"\r", offset))
        if position >= 0
    ]
    return min(found, default=len(data))


def _one_line(text: str) -> str:
    return " ⏎ ".join(part.strip() for part in text.splitlines() if part.strip())
