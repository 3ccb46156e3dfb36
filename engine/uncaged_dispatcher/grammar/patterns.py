"""Patterns: the rules of a grammar as steps for the matchers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass

from uncaged_dispatcher.grammar import syntax
from uncaged_dispatcher.grammar.sentences import fold
from uncaged_dispatcher.grammar.syntax import Repeat, Spacing


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words of a sentence as the author wrote them, which is what completion offers.

    ``words`` are the same without case, and ``text`` is the value.
    """

    spelled: tuple[str, ...]
    words: tuple[str, ...] = field(init=False)
    text: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", tuple(map(fold, self.spelled)))
        object.__setattr__(self, "text", " ".join(self.spelled))


@dataclass(frozen=True, slots=True)
class NumberSlot:
    """A capture of a number."""

    variable: str


@dataclass(frozen=True, slots=True)
class TextSlot:
    """A capture of text up to the next part; ``entity`` is empty for a free capture."""

    variable: str
    entity: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A rule in place; ``variable`` is empty where nothing captures its value."""

    rule: int
    variable: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a pattern with its repetition."""

    part: Phrase | NumberSlot | TextSlot | Reference
    repeat: Repeat = Repeat.ONCE


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """One alternative of a rule.

    ``used`` are the variables that the value names, and ``used_part`` the step whose value it is;
    -1 for none. Patterns are equal only if they are the same object.
    """

    spacing: Spacing
    steps: tuple[Step, ...]
    value: syntax.Expression | None
    used: frozenset[str] = field(init=False)
    used_part: int = field(init=False)

    def __post_init__(self) -> None:
        names = frozenset(n.name for n in _nodes(self.value) if isinstance(n, syntax.Variable))
        object.__setattr__(self, "used", names)
        value = self.value
        index = value.index if isinstance(value, syntax.PartValue) else -1
        object.__setattr__(self, "used_part", index)


Rules = tuple[tuple[Pattern, ...], ...]
"""The patterns of each rule, by the rule's number."""


def _nodes(node: object) -> Iterable[object]:
    """Yield all nodes of a value expression."""
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            pending += node
        elif is_dataclass(node):
            yield node
            pending += [getattr(node, f.name) for f in fields(node)]
