"""Problems of a grammar: file, line, column and message."""

from __future__ import annotations

from collections.abc import Sequence

from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass

from uncaged_dispatcher.grammar.syntax import SourceText


@dataclass(frozen=True, slots=True)
class Problem:
    """One error or warning; line and column count from 1."""

    file: str
    line: int
    column: int
    message: str

    @classmethod
    def at(cls, source: SourceText, offset: int, message: str) -> Problem:
        """Return a problem at an offset of a file."""
        line, column = source.position(offset)
        return cls(source.name, line, column, message)

    def __str__(self) -> str:
        return f"{self.file}({self.line},{self.column}): {self.message}"


class GrammarError(UsageError):
    """A grammar that cannot be used; ``problems`` has every error that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "\n".join(f"{p.file}({p.line},{p.column}): error: {p.message}" for p in problems)
        )
