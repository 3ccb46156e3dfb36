"""What a rule finds in a bundle's syntax tree has a place, so that a person is sent to a line and a
column.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ..records import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a bundle may not hold. *column*: as the syntax tree counts, bytes from 0."""

    line: int
    column: int
    message: str

    @classmethod
    def at(cls, node: ast.expr | ast.stmt | ast.pattern, message: str) -> Finding:
        return cls(line=node.lineno, column=node.col_offset, message=message)

    def located(self, text: str) -> str:
        """``line L, column C: message``, counting characters of *text* from 1."""
        lines = _LINE_END.split(text)
        before = lines[self.line - 1].encode()[: self.column] if self.line <= len(lines) else b""
        return f"line {self.line}, column {len(before.decode(errors='ignore')) + 1}: {self.message}"


def first(findings: Iterable[Finding]) -> Finding | None:
    """The finding that stands first in the file."""
    return min(findings, key=lambda finding: (finding.line, finding.column), default=None)
