"""Search for the continuations of a text: all ways through a grammar as far as the text goes.

In the forward direction the next part is offered behind the last complete one. In the backward
direction the last part is offered again, unless a separator behind it has completed it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from uncaged_bundles.records import dataclass, replace

from uncaged_dispatcher.grammar.compiled import CompiledGrammar
from uncaged_dispatcher.grammar.holes import Hole
from uncaged_dispatcher.grammar.occurrences import ALTERNATIVE_STEPS, Occurrences
from uncaged_dispatcher.grammar.patterns import NumberSlot, Phrase, Reference, TextSlot
from uncaged_dispatcher.grammar.readings import Closed, Enter, Leave, Opened, Took
from uncaged_dispatcher.grammar.sentences import SEPARATOR
from uncaged_dispatcher.grammar.states import (
    Activation,
    Activations,
    Position,
    State,
    StepPhase,
    Trail,
)
from uncaged_dispatcher.grammar.syntax import Spacing

VISIT_STEPS: Final = 2
"""Work of a state, in steps."""


class Direction(StrEnum):
    """Direction in which a person goes: on, or back over the last part."""

    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True, slots=True, eq=False)
class Continuation:
    """A word or a capture (``hole``) that can follow the text up to ``place``.

    spacing: rule for the separators before it. after_text: it ends a text capture that could be
    longer. open_from: where that capture began, if the continuation fits any place after it;
    at_end: it may go to the end of the text. begun: the text ends with the beginning of the word.
    """

    place: int
    spacing: Spacing
    word: str | None = None
    hole: Hole | None = None
    after_text: bool = False
    open_from: int | None = None
    at_end: bool = False
    begun: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """Return what distinguishes the way back over this part."""
        hole = self.hole and (self.hole.activation, self.hole.step)
        return self.place, self.word, hole, self.after_text


def find_continuations(
    grammar: CompiledGrammar, places: Occurrences, direction: Direction
) -> list[Continuation]:
    """Return the continuations on all ways through a grammar, in the order of its rules.

    Raises:
        SentenceError: the search took too many steps.
    """
    walk = _Walk(grammar, places, direction)
    for entry, pattern in enumerate(grammar.rules[grammar.start]):
        root = Activation(pattern, (0, None), pattern.spacing, None, entry)
        walk.push(State(root, 0, StepPhase.FIRST, root.begin), (None, Enter(pattern, entry, False)))
        walk.search()
    return walk.found


class _Walk:
    """Depth-first search with an explicit stack.

    ``returns`` tells whether the way leads back over open text at the end. ``back`` of a branch is
    the last part that was read, as the continuation that offers it again.
    """

    def __init__(self, grammar: CompiledGrammar, places: Occurrences, direction: Direction) -> None:
        self.grammar = grammar
        self.places = places
        self.sentence = places.sentence
        size = self.sentence.size
        completed = size == 0 or self.sentence.kinds[-1] == SEPARATOR
        self.backward = direction is Direction.BACKWARD
        self.returns = self.backward and not completed
        self.found: list[Continuation] = []
        self.stack: list[tuple[State, Trail, Continuation | None]] = []
        self.visited: set[tuple[object, ...]] = set()
        self.activations = Activations()

    def push(self, state: State, trail: Trail, back: Continuation | None = None) -> None:
        """Add a branch."""
        self.stack.append((state, trail, back))

    def search(self) -> None:
        """Search all branches; of those that are added together, the first goes first."""
        while self.stack:
            state, trail, back = self.stack.pop()
            key = (state, back and back.key)
            if key in self.visited:
                continue
            self.visited.add(key)
            self.places.work(VISIT_STEPS)
            height = len(self.stack)
            self.visit(state, trail, back)
            self.stack[height:] = reversed(self.stack[height:])

    def visit(self, state: State, trail: Trail, back: Continuation | None) -> None:
        """Add the states after a state, and the continuations in it."""
        if state.step == len(state.activation.pattern.steps):
            after = state.left()
            if after is not None:
                self.push(after, (trail, Leave()), back)
            elif back is not None and self.complete(state.position):
                self.found.append(back)
        elif state.phase is StepPhase.TAKE:
            self.take(state, trail, back)
        else:
            choices = state.choices()
            for choice in reversed(choices) if state.phase is StepPhase.AGAIN else choices:
                self.push(choice, trail, back)

    def complete(self, position: Position) -> bool:
        """Return whether nothing of the text is left."""
        place, slot = position
        return slot is not None or self.sentence.solid[place] >= self.sentence.size

    def take(self, state: State, trail: Trail, back: Continuation | None) -> None:
        """Read a part, or offer it."""
        activation = state.activation
        lead = activation.spacing_at(state.position)
        match activation.pattern.steps[state.step].part:
            case Reference(rule=rule):
                self.places.work(ALTERNATIVE_STEPS * len(self.grammar.rules[rule]))
                for pattern in self.grammar.rules[rule]:
                    inner = self.activations.enter(pattern, state, lead)
                    enter = Enter(pattern, state.step, inner.optional)
                    self.push(
                        State(inner, 0, StepPhase.FIRST, state.position), (trail, enter), back
                    )
            case TextSlot() as part:
                self.text(part, state, trail, back)
            case NumberSlot() as part:
                self.number(part, state, trail, back)
            case Phrase() as part:
                if state.position[1] is None:
                    self.phrase(part, state, trail, back)
                else:
                    self.phrase_after_text(part, state, trail, back)

    def offer(self, item: Continuation, back: Continuation | None) -> None:
        """Offer a part behind the last one, or, in the backward direction, the last one again."""
        returns = self.backward and item.place == self.sentence.size
        self.found.append(back if returns and back is not None else item)

    def offer_after_text(
        self, item: Continuation, back: Continuation | None, *, returns: bool
    ) -> None:
        """Offer a part behind the open text at the end, or its capture again."""
        place = self.sentence.solid[item.place]
        if returns and back is not None:
            self.found.append(back)
        self.found.append(replace(item, after_text=True, open_from=place, at_end=not returns))

    def capture(self, state: State, place: int, trail: Trail) -> Continuation:
        """Return the continuation that fills in the capture of a state."""
        lead = state.activation.spacing_at(state.position)
        hole = Hole(state.activation, state.step, trail)
        return Continuation(place, lead, hole=hole)

    def capture_after_text(self, state: State, trail: Trail, back: Continuation | None) -> None:
        """Offer the capture of a state behind the open text."""
        item = self.capture(state, state.position[0], (trail, Closed(self.sentence.size)))
        self.offer_after_text(item, back, returns=self.returns)

    def text(self, part: TextSlot, state: State, trail: Trail, back: Continuation | None) -> None:
        """Begin a text capture, or offer it."""
        place, slot = state.position
        lead = state.activation.spacing_at(state.position)
        if slot is not None:
            for start in self.places.divisions(place):
                closed = (trail, Closed(start))
                opened = (closed, Opened(part, state.step, start))
                item = self.capture(state, self.sentence.trimmed[start], closed)
                self.push(state.next((start, part)), opened, item)
            self.capture_after_text(state, trail, back)
            return
        item = self.capture(state, place, trail)
        if self.sentence.solid[place] >= self.sentence.size:
            self.offer(item, back)
        elif (begin := self.places.text_start(place, lead)) is not None:
            self.push(state.next((begin, part)), (trail, Opened(part, state.step, begin)), item)

    def number(
        self, part: NumberSlot, state: State, trail: Trail, back: Continuation | None
    ) -> None:
        """Read a number, or offer its capture."""
        place, slot = state.position
        own = state.activation.pattern.spacing
        lead = state.activation.spacing_at(state.position)
        if slot is not None:
            for start, end in self.places.after_text(part, place, lead, own):
                closed = (trail, Closed(start))
                item = self.capture(state, self.sentence.trimmed[start], closed)
                self.push(state.next((end, None)), (closed, Took(state.step, start, end)), item)
            self.capture_after_text(state, trail, back)
            return
        item = self.capture(state, place, trail)
        found = self.places.next(part, place, lead, own)
        if found is not None:
            self.push(state.next((found[1], None)), (trail, Took(state.step, *found)), item)
        elif self.sentence.solid[place] >= self.sentence.size:
            self.offer(item, back)
        else:
            self.found.append(item)

    def phrase(self, part: Phrase, state: State, trail: Trail, back: Continuation | None) -> None:
        """Read a phrase, or offer the first of its words that the text does not have."""
        place, _ = state.position
        own = state.activation.pattern.spacing
        lead = state.activation.spacing_at(state.position)
        ends = self.places.word_ends(part, place, lead, own)
        for count, end in enumerate(ends):
            spacing = own if count else lead
            back = Continuation(place, spacing, part.spelled[count])
            place = end
        if len(ends) == len(part.words):
            begin = state.position[0]
            self.push(state.next((place, None)), (trail, Took(state.step, begin, place)), back)
            return
        item = Continuation(place, own if ends else lead, part.spelled[len(ends)])
        if self.sentence.solid[place] >= self.sentence.size:
            self.offer(item, back)
        else:
            self.found.append(item)

    def phrase_after_text(
        self, part: Phrase, state: State, trail: Trail, back: Continuation | None
    ) -> None:
        """Read a phrase at each place where it ends the open text, or offer a word of it: behind
        the words that the text ends with, or behind the open text.
        """
        opened, _ = state.position
        sentence, places = self.sentence, self.places
        own = state.activation.pattern.spacing
        lead = state.activation.spacing_at(state.position)
        for start, end in places.after_text(part, opened, lead, own):
            *before, last = [start, *places.word_ends(part, start, Spacing.NONE, own)][:-1]
            begin = last if before else sentence.trimmed[start]
            word = Continuation(begin, own if before else lead, part.spelled[-1], after_text=True)
            took = ((trail, Closed(start)), Took(state.step, start, end))
            self.push(state.next((end, None)), took, word)
        first = Continuation(opened, lead, part.spelled[0])
        count, place, begun = places.begun_phrase(part, opened, lead, own)
        if begun:
            spacing = own if count else lead
            word = Continuation(place, spacing, part.spelled[count], after_text=True, begun=True)
            self.found.append(word)
        elif not count:
            self.offer_after_text(first, back, returns=self.returns)
        elif not self.backward:
            word = Continuation(sentence.size, own, part.spelled[count], after_text=True)
            self.found.append(word)
        elif count > 1:
            word = Continuation(place, own, part.spelled[count - 1], after_text=True)
            self.found.append(word)
        else:
            self.offer_after_text(first, back, returns=True)
