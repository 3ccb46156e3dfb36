"""Readings of a sentence: values, counts and entities, built from the events of a match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple, TypeVar

from uncaged_bundles.records import dataclass, field

from uncaged_dispatcher.grammar.patterns import Pattern, Phrase, Reference, TextSlot
from uncaged_dispatcher.grammar.sentences import Sentence, number_value
from uncaged_dispatcher.grammar.syntax import UNDEFINED, Repeat
from uncaged_dispatcher.grammar.values import EvaluationError, evaluate

Key = TypeVar("Key", str, int)


class Enter(NamedTuple):
    """A pattern begins, for the step of the pattern around it."""

    pattern: Pattern
    step: int
    optional: bool


class Leave(NamedTuple):
    """The innermost pattern ends."""


class Took(NamedTuple):
    """A phrase or a number at ``start:end``."""

    step: int
    start: int
    end: int


class Opened(NamedTuple):
    """A text capture begins."""

    slot: TextSlot
    step: int
    start: int


class Closed(NamedTuple):
    """The open text capture ends; ``value`` is that of its entity, if one was resolved."""

    end: int
    value: object = UNDEFINED


Event = Enter | Leave | Took | Opened | Closed


@dataclass(frozen=True, slots=True)
class Entity:
    """A capture of a type that the matcher does not check; ``value`` is None until resolved."""

    type: str
    variable: str
    text: str
    start: int
    value: object = None


class Rank(NamedTuple):
    """Order of readings: the least is the best.

    No free text comes first, then more parts outside of optional groups, more parts, and fewer
    characters in free text. A part is a word of a phrase or a capture.
    """

    has_free_text: bool
    fewer_required_parts: int
    fewer_parts: int
    free_text: int


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a sentence.

    Attributes:
        value: the value of the start rule.
        matched_values: captured values that the value was made of.
        free_characters: characters in the free captures among them.
        entities: captures to be resolved, in order.
        rank: place in the order of readings.
        rule: the name of the start rule's alternative.
    """

    value: object
    matched_values: int
    free_characters: int
    entities: tuple[Entity, ...]
    rank: Rank
    rule: str = "Start"

    def document(self) -> dict[str, object]:
        """Return the reading as JSON; a number that JSON lacks, and no value, are null."""
        return {
            "value": json_value(self.value),
            "rule": self.rule,
            "matchedValues": self.matched_values,
            "freeCharacters": self.free_characters,
            "entities": [
                {
                    "type": entity.type,
                    "variable": entity.variable,
                    "text": entity.text,
                    "start": entity.start,
                    "value": json_value(entity.value),
                }
                for entity in self.entities
            ],
        }


def json_value(value: object) -> object:
    """Return a value as JSON has it: null for numbers that it lacks and for no value."""
    match value:
        case dict():
            return {name: json_value(item) for name, item in value.items()}
        case list():
            return [json_value(item) for item in value]
        case float() if not isfinite(value):
            return None
        case _:
            return None if value is UNDEFINED else value


@dataclass(slots=True)
class _Value:
    """A value with its counts; ``problem`` instead of a value that cannot be computed."""

    value: object
    leaves: int = 0
    characters: int = 0
    problem: EvaluationError | None = None


class _Known(Mapping[Key, object]):
    """Values by variable or by step, counting those that an expression asks for."""

    def __init__(self, known: Mapping[Key, _Value]) -> None:
        self.known: Mapping[Key, _Value] = known
        self.leaves = 0
        self.characters = 0

    def __getitem__(self, key: Key) -> object:
        found = self.known[key]
        if found.problem is not None:
            raise found.problem
        self.leaves += found.leaves
        self.characters += found.characters
        return found.value

    def __contains__(self, key: object) -> bool:
        return key in self.known

    def __iter__(self) -> Iterator[Key]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


@dataclass(slots=True)
class _Frame:
    """A pattern under construction; ``step`` is the place of its value in the frame around it."""

    pattern: Pattern
    step: int
    optional: bool
    needed: bool
    variables: dict[str, _Value] = field(default_factory=dict)
    parts: dict[int, _Value] = field(default_factory=dict)


class _Builder:
    """Evaluation of events, innermost pattern first. A value that is not used is not computed."""

    def __init__(self, sentence: Sentence, rule: str, work: Callable[[int], None]) -> None:
        self.sentence = sentence
        self.rule = rule
        self.work = work
        self.frames: list[_Frame] = []
        self.entities: list[Entity] = []
        self.result = _Value(UNDEFINED)
        self.parts = self.required = self.free_text = 0
        self.has_free_text = False

    def add(self, events: Sequence[Event]) -> None:
        """Evaluate events."""
        closes = (event for event in events if isinstance(event, Closed))
        for event in events:
            match event:
                case Enter():
                    self.enter(event)
                case Leave():
                    self.leave()
                case Took():
                    self.took(event)
                case Opened():
                    self.text(event, next(closes))
                case Closed():
                    pass

    def enter(self, event: Enter) -> None:
        """Begin a pattern."""
        around = self.frames[-1] if self.frames else None
        needed = around is None or (around.needed and _uses(around.pattern, event.step))
        self.frames.append(_Frame(event.pattern, event.step, event.optional, needed))

    def leave(self) -> None:
        """Compute the value of the innermost pattern, and put it into the one around it."""
        frame = self.frames.pop()
        value = _computed(frame, self.work) if frame.needed else _Value(UNDEFINED)
        if not self.frames:
            self.result = value
            return
        self.keep(self.frames[-1], frame.step, value)

    def keep(self, frame: _Frame, index: int, value: _Value) -> None:
        """Store the value of a step by its index, and by the variable that captures it."""
        part = frame.pattern.steps[index].part
        frame.parts[index] = value
        if isinstance(part, Phrase) or not part.variable:
            return
        if value.value is not UNDEFINED or value.problem is not None:
            frame.variables[part.variable] = value

    def took(self, event: Took) -> None:
        """Store the value of a phrase or a number."""
        frame = self.frames[-1]
        part = frame.pattern.steps[event.step].part
        if isinstance(part, Phrase):
            self.count(len(part.words), frame, event.step)
            self.keep(frame, event.step, _Value(part.text, 1))
        else:
            self.count(1, frame, event.step)
            text = self.sentence.folded[event.start : event.end]
            self.keep(frame, event.step, _Value(number_value(text), 1))

    def text(self, event: Opened, close: Closed) -> None:
        """Store the text of a capture."""
        frame = self.frames[-1]
        slot = event.slot
        start = self.sentence.solid[event.start]
        text = self.sentence.text[start : self.sentence.trimmed[close.end]]
        self.count(1, frame, event.step)
        resolved = slot.entity and close.value is not UNDEFINED
        if not resolved:
            self.has_free_text = True
            self.free_text += len(text)
        if slot.entity:
            found = close.value if resolved else None
            self.entities.append(Entity(slot.entity, slot.variable, text, start, found))
        value = close.value if resolved else text
        self.keep(frame, event.step, _Value(value, 1, 0 if resolved else len(text)))

    def count(self, parts: int, frame: _Frame, index: int) -> None:
        """Count parts for the rank."""
        self.parts += parts
        if not frame.optional and frame.pattern.steps[index].repeat is Repeat.ONCE:
            self.required += parts

    def reading(self) -> Reading | None:
        """Return the reading; None if its value cannot be computed."""
        if self.result.problem is not None:
            return None
        rank = Rank(self.has_free_text, -self.required, -self.parts, self.free_text)
        return Reading(
            self.result.value,
            self.result.leaves,
            self.result.characters,
            tuple(self.entities),
            rank,
            self.rule,
        )


def build_reading(
    sentence: Sentence, events: Iterable[Event], rule: str, work: Callable[[int], None]
) -> Reading | None:
    """Return the reading of a match.

    Args:
        sentence: the sentence.
        events: what the start rule's pattern took, in order; each capture that is opened is
            closed, possibly after the end of its pattern.
        rule: the name of the start rule's alternative.
        work: counts the steps of long evaluations; it may raise.
    Returns:
        None if the value cannot be computed, for example the sum of a text and a number.
    """
    builder = _Builder(sentence, rule, work)
    builder.add(list(events))
    return builder.reading()


def build_partial(
    sentence: Sentence, events: Iterable[Event], work: Callable[[int], None]
) -> object:
    """Return the value of patterns that have not ended, from what they have so far."""
    builder = _Builder(sentence, "", work)
    builder.add(list(events))
    while builder.frames:
        builder.leave()
    return builder.result.value


def _uses(pattern: Pattern, index: int) -> bool:
    """Return whether a pattern's value needs that of a step."""
    part = pattern.steps[index].part
    if index == pattern.used_part:
        return True
    return isinstance(part, Reference) and part.variable in pattern.used


def _computed(frame: _Frame, work: Callable[[int], None]) -> _Value:
    """Return the value of a pattern whose steps have all been read."""
    if frame.pattern.value is None:
        return _Value(UNDEFINED)
    variables, parts = _Known(frame.variables), _Known(frame.parts)
    try:
        value = evaluate(frame.pattern.value, variables, parts, work)
    except EvaluationError as problem:
        return _Value(UNDEFINED, problem=problem)
    leaves = variables.leaves + parts.leaves
    return _Value(value, leaves, variables.characters + parts.characters)
