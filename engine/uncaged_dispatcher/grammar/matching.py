"""All readings of a sentence: depth-first search over the patterns of a grammar.

Each length of a text capture, each optional part taken or skipped and each count of a repetition is
a reading of its own. The search keeps its own stack, and the states from which no reading exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from uncaged_dispatcher.grammar.choices import (
    MAX_READINGS,
    Captures,
    Choices,
    Optionals,
    Repeats,
)
from uncaged_dispatcher.grammar.compiled import CompiledGrammar
from uncaged_dispatcher.grammar.occurrences import Occurrences
from uncaged_dispatcher.grammar.patterns import (
    NumberSlot,
    Pattern,
    Phrase,
    Reference,
    Step,
    TextSlot,
)
from uncaged_dispatcher.grammar.readings import (
    Enter,
    Event,
    Leave,
    Opened,
    Reading,
    Took,
    build_reading,
)
from uncaged_dispatcher.grammar.sentences import SentenceError
from uncaged_dispatcher.grammar.syntax import Repeat, Spacing

SEARCH_STEPS: Final = 3
"""Work of searching a state, in steps."""


class Readings(list[Reading]):
    """Readings in the order in which they were found; ``cut`` if there are more."""

    cut: bool = False


_Position = tuple[int, TextSlot | None]
"""A place of the sentence; with a slot, the place where that open text capture began."""
_Trail = tuple["_Trail", Event] | None
"""Events so far, last first."""


class _Activation:
    """A pattern that is being read; equal activations are one object.

    ``begin`` is where it began, ``lead`` the spacing before its first text, and ``resume`` the step
    of ``around`` that it is read for; at the root, the number of the entry.
    """

    __slots__ = ("around", "begin", "lead", "optional", "pattern", "resume")

    optional: bool

    def __init__(
        self,
        pattern: Pattern,
        begin: _Position,
        lead: Spacing,
        around: _Activation | None,
        resume: int,
    ) -> None:
        self.pattern = pattern
        self.begin = begin
        self.lead = lead
        self.around = around
        self.resume = resume
        step = around.pattern.steps[resume] if around else None
        self.optional = around is not None and (
            around.optional or (step is not None and step.repeat in (Repeat.OPTIONAL, Repeat.ANY))
        )


class _Phase(IntEnum):
    """Progress with a step: nothing yet, one repetition read, or to be taken now."""

    FIRST = 0
    AGAIN = 1
    TAKE = 2


class _State(NamedTuple):
    """A step to be read at a position; what follows depends on nothing else."""

    activation: _Activation
    step: int
    phase: _Phase
    position: _Position


class _Kind(StrEnum):
    """Kind of a choice between branches."""

    RULE = "rule"
    TEXT = "text"
    OPTIONAL = "optional"
    REPEAT = "repeat"


_Branch = tuple[_State, _Trail, _Kind]
"""A state to be searched, its events, and the choice that it is a later branch of."""
_Searched = tuple[_State, int]
"""Mark below the branches of a state, with the number of readings when it was reached."""


def match_all(
    grammar: CompiledGrammar, places: Occurrences, choices: Choices, limit: int = MAX_READINGS
) -> Readings:
    """Return all readings of the sentence, in the order of the search.

    Raises:
        SentenceError: the search found nothing within its limit of work.
    """
    return _Search(grammar, places, choices, limit).run()


class _Search:
    """Depth-first search with an explicit stack."""

    def __init__(
        self, grammar: CompiledGrammar, places: Occurrences, choices: Choices, limit: int
    ) -> None:
        self.grammar = grammar
        self.places = places
        self.sentence = places.sentence
        self.limit = limit
        self.found = Readings()
        self.stack: list[_Branch | _Searched] = []
        self.failed: set[_State] = set()
        self.activations: dict[tuple[object, ...], _Activation] = {}
        self.skip_first = choices.optionals is Optionals.SKIP
        self.leave_first = choices.repeats is Repeats.RELUCTANT
        self.decided = set()
        if choices.captures is Captures.SHORTEST:
            self.decided.add(_Kind.TEXT)
        if choices.optionals is not Optionals.EXHAUSTIVE:
            self.decided.add(_Kind.OPTIONAL)
        if choices.repeats is not Repeats.EXHAUSTIVE:
            self.decided.add(_Kind.REPEAT)

    def run(self) -> Readings:
        """Search all entries of the grammar in order."""
        for index, pattern in enumerate(self.grammar.rules[self.grammar.start]):
            root = _Activation(pattern, (0, None), pattern.spacing, None, index)
            enter = Enter(pattern, index, False)
            self.push(_State(root, 0, _Phase.FIRST, root.begin), (None, enter))
            try:
                self.search()
            except SentenceError:
                if not self.found:
                    raise
                self.found.cut = True
            if self.found.cut:
                break
        return self.found

    def push(self, state: _State, trail: _Trail, kind: _Kind = _Kind.RULE) -> None:
        """Add a branch that is searched before those that were added earlier."""
        self.stack.append((state, trail, kind))

    def search(self) -> None:
        """Search until the stack is empty or enough readings were found."""
        stack, failed = self.stack, self.failed
        while stack:
            top = stack.pop()
            if len(top) == 2:
                state, found = top
                if found == len(self.found):
                    failed.add(state)
                continue
            state, trail, _ = top
            if state in failed:
                continue
            if len(self.found) >= self.limit:
                self.found.cut = True
                return
            self.places.work(SEARCH_STEPS)
            stack.append((state, len(self.found)))
            branches = list(self.branches(state, trail))
            stack.extend(reversed(branches))

    def branches(self, state: _State, trail: _Trail) -> Iterator[_Branch]:
        """Yield the states after a state in the order in which they are searched."""
        activation, index, phase, position = state
        if index == len(activation.pattern.steps):
            yield from self.leave(activation, position, trail)
            return
        step = activation.pattern.steps[index]
        if phase is _Phase.TAKE or step.repeat is Repeat.ONCE:
            yield from self.take(activation, index, step, position, trail)
            return
        take = _State(activation, index, _Phase.TAKE, position)
        if step.repeat is Repeat.SOME and phase is _Phase.FIRST:
            yield take, trail, _Kind.RULE
            return
        kind = _Kind.OPTIONAL if step.repeat is Repeat.OPTIONAL else _Kind.REPEAT
        after = _State(activation, index + 1, _Phase.FIRST, position)
        skip_first = self.skip_first if kind is _Kind.OPTIONAL else self.leave_first
        for choice in (after, take) if skip_first else (take, after):
            yield choice, trail, kind

    def leave(
        self, activation: _Activation, position: _Position, trail: _Trail
    ) -> Iterator[_Branch]:
        """Yield the state after the end of a pattern; a repetition ends with an empty one."""
        trail = (trail, Leave())
        around, index = activation.around, activation.resume
        if around is None:
            self.finish(activation, position, trail)
            return
        repeats = around.pattern.steps[index].repeat in (Repeat.ANY, Repeat.SOME)
        if repeats and position != activation.begin:
            yield _State(around, index, _Phase.AGAIN, position), trail, _Kind.RULE
        else:
            yield _State(around, index + 1, _Phase.FIRST, position), trail, _Kind.RULE

    def finish(self, root: _Activation, position: _Position, trail: _Trail) -> None:
        """Add the reading if nothing of the sentence is left."""
        place, slot = position
        if slot is not None:
            closed = self.places.close(slot, place, self.sentence.size)
            if closed is None:
                return
            trail = (trail, closed)
        elif self.sentence.solid[place] < self.sentence.size:
            return
        name = self.grammar.entries[root.resume].name
        events = events_of(trail)
        self.places.work(len(events))
        reading = build_reading(self.sentence, events, name)
        if reading is not None:
            self.found.append(reading)
            if self.decided:
                self.drop_decided()

    def drop_decided(self) -> None:
        """Remove the later branches of choices of which only the first that leads to a reading
        counts. All branches on the stack are off the path of the reading just found.
        """
        self.stack[:] = [b for b in self.stack if len(b) == 2 or b[2] not in self.decided]

    def take(
        self, activation: _Activation, index: int, step: Step, position: _Position, trail: _Trail
    ) -> Iterator[_Branch]:
        """Yield the states after a part."""
        own = activation.pattern.spacing
        lead = activation.lead if position == activation.begin else own
        match step.part:
            case Phrase() | NumberSlot() as part:
                for start, end, before in self.parts(part, position, lead, own, trail):
                    state = _State(activation, index + 1, _Phase.FIRST, (end, None))
                    yield state, (before, Took(index, start, end)), _Kind.TEXT
            case TextSlot() as part:
                for start, before in self.openings(position, lead, trail):
                    state = _State(activation, index + 1, _Phase.FIRST, (start, part))
                    yield state, (before, Opened(part, index, start)), _Kind.TEXT
            case Reference(rule=rule):
                for pattern in self.grammar.rules[rule]:
                    inner = self.activate(pattern, position, lead, activation, index)
                    enter = Enter(pattern, index, inner.optional)
                    state = _State(inner, 0, _Phase.FIRST, position)
                    yield state, (trail, enter), _Kind.RULE

    def parts(
        self,
        part: Phrase | NumberSlot,
        position: _Position,
        lead: Spacing,
        own: Spacing,
        trail: _Trail,
    ) -> Iterator[tuple[int, int, _Trail]]:
        """Yield start and end of a phrase or a number at a position, nearest first, with the events
        before it.
        """
        place, slot = position
        if slot is None:
            found = self.places.next(part, place, lead, own)
            if found is not None:
                yield *found, trail
            return
        for start, end in self.places.after_text(part, place, lead, own):
            closed = self.places.close(slot, place, start)
            if closed is not None:
                yield start, end, (trail, closed)

    def openings(
        self, position: _Position, lead: Spacing, trail: _Trail
    ) -> Iterator[tuple[int, _Trail]]:
        """Yield the places where a text capture can begin, with the events before it."""
        place, slot = position
        if slot is None:
            start = self.places.text_start(place, lead)
            if start is not None:
                yield start, trail
            return
        for start in self.places.divisions(place):
            closed = self.places.close(slot, place, start)
            if closed is not None:
                yield start, (trail, closed)

    def activate(
        self,
        pattern: Pattern,
        begin: _Position,
        lead: Spacing,
        around: _Activation,
        resume: int,
    ) -> _Activation:
        """Return the activation of a pattern; the same one for the same circumstances."""
        key = (id(pattern), begin, lead, id(around), resume)
        if key not in self.activations:
            self.activations[key] = _Activation(pattern, begin, lead, around, resume)
        return self.activations[key]


def events_of(trail: _Trail) -> list[Event]:
    """Return the events of a trail, first to last."""
    events = []
    while trail is not None:
        trail, event = trail
        events.append(event)
    events.reverse()
    return events
