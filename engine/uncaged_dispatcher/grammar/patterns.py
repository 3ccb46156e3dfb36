"""Patterns: the rules of a grammar as steps for the matchers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from uncaged_dispatcher.grammar import syntax
from uncaged_dispatcher.grammar.encoding import (
    Json,
    expression_document,
    read_expression,
    variables_of,
)
from uncaged_dispatcher.grammar.sentences import fold
from uncaged_dispatcher.grammar.syntax import Repeat, Spacing


class Phrase(NamedTuple):
    """Words of a sentence without case, and as the author spelled them, which is offered."""

    words: tuple[str, ...]
    spelled: tuple[str, ...]

    @classmethod
    def of(cls, spelled: Iterable[str]) -> Phrase:
        """Return the phrase of some words."""
        words = tuple(spelled)
        return cls(tuple([fold(word) for word in words]), words)

    @property
    def text(self) -> str:
        """Return the phrase as a value."""
        return " ".join(self.spelled)


class NumberSlot(NamedTuple):
    """A capture of a number."""

    variable: str


class TextSlot(NamedTuple):
    """A capture of text up to the next part; ``entity`` is empty for a free capture."""

    variable: str
    entity: str


class Reference(NamedTuple):
    """A rule in place; ``variable`` is empty where nothing captures its value."""

    rule: int
    variable: str = ""


Part = Phrase | NumberSlot | TextSlot | Reference


class Step(NamedTuple):
    """One part of a pattern with its repetition."""

    part: Part
    repeat: Repeat = Repeat.ONCE


class Pattern:
    """One alternative of a rule.

    Attributes:
        spacing: rule for separators.
        steps: the parts in order.
        used: the variables that the value names.
        used_part: the step whose value the pattern has, or -1.
    """

    __slots__ = ("_encoded", "_value", "spacing", "steps", "used", "used_part")

    def __init__(
        self, spacing: Spacing, steps: tuple[Step, ...], value: syntax.Expression | None
    ) -> None:
        self.spacing = spacing
        self.steps = steps
        self.used = frozenset(variables_of(value))
        self.used_part = value.index if isinstance(value, syntax.PartValue) else -1
        self._value = value
        self._encoded: Json = None

    @property
    def value(self) -> syntax.Expression | None:
        """The expression of the pattern's value; that of a document is read at its first use."""
        if self._encoded is not None:
            self._value, self._encoded = read_expression(self._encoded), None
        return self._value

    def with_steps(self, steps: tuple[Step, ...]) -> Pattern:
        """Return the pattern with other steps; the variables in them stay."""
        pattern = Pattern.__new__(Pattern)
        pattern.spacing, pattern.steps = self.spacing, steps
        pattern.used, pattern.used_part = self.used, self.used_part
        pattern._value, pattern._encoded = self._value, self._encoded
        return pattern

    def document(self) -> Json:
        """Return the pattern as JSON."""
        steps = [[_TAGS[type(part)], *_fields(part), repeat.value] for part, repeat in self.steps]
        expression = expression_document(self.value)
        return [self.spacing.value, steps, expression, sorted(self.used), self.used_part]

    @classmethod
    def read(cls, document: Any) -> Pattern:
        """Return the pattern of a `document`."""
        pattern = cls.__new__(cls)
        spacing, steps, pattern._encoded, used, pattern.used_part = document
        pattern.spacing = _SPACINGS[spacing]
        pattern.steps = tuple([_READERS[step[0]](step) for step in steps])
        pattern.used = frozenset(used)
        pattern._value = None
        return pattern


Rules = tuple[tuple[Pattern, ...], ...]
"""The patterns of each rule, by the rule's number."""

_SPACINGS: Final = {spacing.value: spacing for spacing in Spacing}
_REPEATS: Final = {repeat.value: repeat for repeat in Repeat}
_TAGS: Final = {Phrase: "phrase", NumberSlot: "number", TextSlot: "text", Reference: "rule"}
_READERS: Final[dict[str, Callable[[Any], Step]]] = {
    "phrase": lambda data: Step(Phrase.of(data[1]), _REPEATS[data[2]]),
    "number": lambda data: Step(NumberSlot(data[1]), _REPEATS[data[2]]),
    "text": lambda data: Step(TextSlot(data[1], data[2]), _REPEATS[data[3]]),
    "rule": lambda data: Step(Reference(data[1], data[2]), _REPEATS[data[3]]),
}
"""Readers of steps by the tag of their part."""


def _fields(part: Part) -> list[Json]:
    """Return what a document keeps of a part."""
    return [list(part.spelled)] if isinstance(part, Phrase) else list(part)
