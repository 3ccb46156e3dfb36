"""States of a search over patterns: position, activation of a pattern, progress with a step."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from uncaged_dispatcher.grammar.patterns import Pattern, TextSlot
from uncaged_dispatcher.grammar.readings import Event
from uncaged_dispatcher.grammar.syntax import Repeat, Spacing

Position = tuple[int, TextSlot | None]
"""A place of the sentence; with a slot, the place where that open text capture began."""
Trail = tuple["Trail", Event] | None
"""Events so far, last first."""


class Activation:
    """A pattern that is being read.

    ``begin`` is where it began, ``lead`` the spacing before its first text, and ``resume`` the step
    of ``around`` that it is read for; at the root, the number of the entry.
    """

    __slots__ = ("around", "begin", "lead", "optional", "pattern", "resume")

    optional: bool

    def __init__(
        self,
        pattern: Pattern,
        begin: Position,
        lead: Spacing,
        around: Activation | None,
        resume: int,
    ) -> None:
        self.pattern = pattern
        self.begin = begin
        self.lead = lead
        self.around = around
        self.resume = resume
        self.optional = around is not None and (
            around.optional or around.pattern.steps[resume].repeat in (Repeat.OPTIONAL, Repeat.ANY)
        )

    def spacing_at(self, position: Position) -> Spacing:
        """Return the spacing before a part at a position: that of the rule around until the
        pattern has text of its own.
        """
        return self.lead if position == self.begin else self.pattern.spacing


class StepPhase(IntEnum):
    """Progress with a step: nothing yet, one repetition read, or to be taken now."""

    FIRST = 0
    AGAIN = 1
    TAKE = 2

    # That of an enumeration is slow.
    __hash__ = int.__hash__


class State(NamedTuple):
    """A step to be read at a position; what follows depends on nothing else."""

    activation: Activation
    step: int
    phase: StepPhase
    position: Position

    def next(self, position: Position) -> State:
        """Return the state after the step."""
        return State(self.activation, self.step + 1, StepPhase.FIRST, position)

    def left(self) -> State | None:
        """Return the state after the end of the pattern; None at the root. A repetition ends with
        one that takes nothing.
        """
        begin, around, resume = (
            self.activation.begin,
            self.activation.around,
            self.activation.resume,
        )
        if around is None:
            return None
        again = around.pattern.steps[resume].repeat in (Repeat.ANY, Repeat.SOME)
        if again and self.position != begin:
            return State(around, resume, StepPhase.AGAIN, self.position)
        return State(around, resume + 1, StepPhase.FIRST, self.position)

    def choices(self) -> tuple[State, ...]:
        """Return the states in which the step is taken or skipped, as its repetition allows."""
        repeat = self.activation.pattern.steps[self.step].repeat
        take = self._replace(phase=StepPhase.TAKE)
        if repeat is Repeat.ONCE or (repeat is Repeat.SOME and self.phase is StepPhase.FIRST):
            return (take,)
        return take, self.next(self.position)


class Activations:
    """Activations of one search: those of the same circumstances are one object."""

    def __init__(self) -> None:
        self.known: dict[tuple[object, ...], Activation] = {}

    def enter(self, pattern: Pattern, state: State, lead: Spacing) -> Activation:
        """Return the activation of a pattern for a state's step."""
        key = (id(pattern), state.position, lead, id(state.activation), state.step)
        found = self.known.get(key)
        if found is None:
            found = Activation(pattern, state.position, lead, state.activation, state.step)
            self.known[key] = found
        return found


def events_of(trail: Trail) -> list[Event]:
    """Return the events of a trail, first to last."""
    events = []
    while trail is not None:
        trail, event = trail
        events.append(event)
    events.reverse()
    return events
