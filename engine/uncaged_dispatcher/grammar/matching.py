"""All readings of a sentence: depth-first search over the patterns of a grammar.

Each length of a text capture, each optional part taken or skipped and each count of a repetition is
a reading of its own. The search keeps its own stack, and the states from which no reading exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from uncaged_dispatcher.grammar.choices import (
    MAX_READINGS,
    Captures,
    Choices,
    Optionals,
    Repeats,
)
from uncaged_dispatcher.grammar.compiled import CompiledGrammar
from uncaged_dispatcher.grammar.occurrences import ALTERNATIVE_STEPS, Occurrences
from uncaged_dispatcher.grammar.patterns import (
    NumberSlot,
    Phrase,
    Reference,
    TextSlot,
)
from uncaged_dispatcher.grammar.readings import (
    Enter,
    Leave,
    Opened,
    Reading,
    Took,
    build_reading,
)
from uncaged_dispatcher.grammar.sentences import SentenceError
from uncaged_dispatcher.grammar.states import (
    Activation,
    Activations,
    Position,
    State,
    StepPhase,
    Trail,
    events_of,
)
from uncaged_dispatcher.grammar.syntax import Repeat, Spacing

SEARCH_STEPS: Final = 3
"""Work of searching a state, in steps."""


class Readings(list[Reading]):
    """Readings in the order in which they were found; ``cut`` if there are more."""

    cut: bool = False


class _Kind(StrEnum):
    """Kind of a choice between branches."""

    RULE = "rule"
    TEXT = "text"
    OPTIONAL = "optional"
    REPEAT = "repeat"


_Branch = tuple[State, Trail, _Kind]
"""A state to be searched, its events, and the choice that it is a later branch of."""
_Searched = tuple[State, int]
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
        self.failed: set[State] = set()
        self.activations = Activations()
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
            root = Activation(pattern, (0, None), pattern.spacing, None, index)
            enter = Enter(pattern, index, False)
            self.push(State(root, 0, StepPhase.FIRST, root.begin), (None, enter))
            try:
                self.search()
            except SentenceError:
                if not self.found:
                    raise
                self.found.cut = True
            if self.found.cut:
                break
        return self.found

    def push(self, state: State, trail: Trail, kind: _Kind = _Kind.RULE) -> None:
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

    def branches(self, state: State, trail: Trail) -> Iterator[_Branch]:
        """Yield the states after a state in the order in which they are searched."""
        if state.step == len(state.activation.pattern.steps):
            after = state.left()
            if after is None:
                self.finish(state.activation, state.position, (trail, Leave()))
            else:
                yield after, (trail, Leave()), _Kind.RULE
        elif state.phase is StepPhase.TAKE:
            yield from self.take(state, trail)
        else:
            step = state.activation.pattern.steps[state.step]
            optional = step.repeat is Repeat.OPTIONAL
            kind = _Kind.OPTIONAL if optional else _Kind.REPEAT
            choices = state.choices()
            skips = self.skip_first if optional else self.leave_first
            for choice in reversed(choices) if skips else choices:
                yield choice, trail, kind

    def finish(self, root: Activation, position: Position, trail: Trail) -> None:
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
        reading = build_reading(self.sentence, events, name, self.places.work)
        if reading is not None:
            self.found.append(reading)
            if self.decided:
                self.drop_decided()

    def drop_decided(self) -> None:
        """Remove the later branches of choices of which only the first that leads to a reading
        counts. All branches on the stack are off the path of the reading just found.
        """
        self.stack[:] = [b for b in self.stack if len(b) == 2 or b[2] not in self.decided]

    def take(self, state: State, trail: Trail) -> Iterator[_Branch]:
        """Yield the states after a part."""
        pattern = state.activation.pattern
        lead = state.activation.spacing_at(state.position)
        match pattern.steps[state.step].part:
            case Phrase() | NumberSlot() as part:
                for start, end, before in self.parts(
                    part, state.position, lead, pattern.spacing, trail
                ):
                    took = (before, Took(state.step, start, end))
                    yield state.next((end, None)), took, _Kind.TEXT
            case TextSlot() as part:
                for start, before in self.openings(state.position, lead, trail):
                    opened = (before, Opened(part, state.step, start))
                    yield state.next((start, part)), opened, _Kind.TEXT
            case Reference(rule=rule):
                self.places.work(ALTERNATIVE_STEPS * len(self.grammar.rules[rule]))
                for inner in self.grammar.rules[rule]:
                    activation = self.activations.enter(inner, state, lead)
                    enter = (trail, Enter(inner, state.step, activation.optional))
                    yield State(activation, 0, StepPhase.FIRST, state.position), enter, _Kind.RULE

    def parts(
        self,
        part: Phrase | NumberSlot,
        position: Position,
        lead: Spacing,
        own: Spacing,
        trail: Trail,
    ) -> Iterator[tuple[int, int, Trail]]:
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
        self, position: Position, lead: Spacing, trail: Trail
    ) -> Iterator[tuple[int, Trail]]:
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
