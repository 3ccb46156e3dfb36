"""Findings of validation rules, each with its line and column in the bundle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ..records import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One violation of a rule. column: bytes from 0, as the syntax tree counts."""

    line: int
    column: int
    message: str

    @classmethod
    def at(cls, node: ast.expr | ast.stmt | ast.pattern, message: str) -> Finding:
        return cls(line=node.lineno, column=node.col_offset, message=message)

    def located(self, text: str) -> str:
        """Return ``line L, column C: message``, counting characters of *text* from 1."""
        lines = _LINE_END.split(text)
        before = lines[self.line - 1].encode()[: self.column] if self.line <= len(lines) else b""
        return f"line {self.line}, column {len(before.decode(errors='ignore')) + 1}: {self.message}"


def first(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding with the first position in the file, if any."""
    return min(findings, key=lambda finding: (finding.line, finding.column), default=None)
