"""The best reading of a sentence, in polynomial time.

A chart keeps, for a rule at a position, the best way to each end; only the best ways are extended.
Words, numbers and free text begin and end at the boundaries of words.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Final, NamedTuple

from uncaged_dispatcher.grammar.choices import Choices
from uncaged_dispatcher.grammar.compiled import CompiledGrammar
from uncaged_dispatcher.grammar.matching import match_all
from uncaged_dispatcher.grammar.occurrences import Occurrences
from uncaged_dispatcher.grammar.patterns import (
    NumberSlot,
    Pattern,
    Phrase,
    Reference,
    TextSlot,
)
from uncaged_dispatcher.grammar.readings import (
    Closed,
    Enter,
    Event,
    Leave,
    Opened,
    Reading,
    Took,
    build_reading,
)
from uncaged_dispatcher.grammar.states import Position
from uncaged_dispatcher.grammar.syntax import UNDEFINED, Repeat, Spacing

PART: Final = 1 << 12
"""Gain of a part over characters of free text, of which a sentence has fewer."""
REQUIRED: Final = PART << 12
"""Gain of a part outside of optional groups, over that of all other parts."""


class _Item(NamedTuple):
    """A rule at a position, with the spacing before its first text."""

    rule: int
    position: Position
    lead: Spacing
    optional: bool


class _End(NamedTuple):
    """Where a rule or a step can end, and whether free text was captured."""

    position: Position
    free_text: bool


class _Inner(NamedTuple):
    """Events of a pattern for the step that refers to it; at the root, for the entry."""

    pattern: Pattern
    step: int
    optional: bool
    trail: _Trail


_Trail = tuple["_Trail", Event | _Inner] | None
"""Events so far, last first."""
_Ways = dict[_End, tuple[int, _Trail]]
"""The best way to each end: its cost and events. The cost of a whole is the sum of its parts'."""
_Ends = dict[_End, tuple[int, Pattern, _Trail]]
"""The best way through a rule to each end."""
_Solving = Generator[_Item, _Ends, _Ways]
"""Computation that asks for the ends of items."""


def best_reading(
    grammar: CompiledGrammar, places: Occurrences, entries: Iterable[int] | None = None
) -> Reading | None:
    """Return the best reading of the sentence by some entries of a grammar, or by all.

    Raises:
        SentenceError: the search took too many steps.
    """
    chart = _Chart(grammar, places)
    found: list[tuple[bool, int, int, _Inner]] = []
    for entry in range(len(grammar.entries)) if entries is None else entries:
        for has_free_text, cost, way in chart.whole(entry):
            found.append((has_free_text, cost, len(found), way))
    for *_, way in sorted(found):
        name = grammar.entries[way.step].name
        reading = build_reading(places.sentence, chart.events(way), name, places.work)
        if reading is not None:
            return reading
    if not found:
        return None
    # The value of each best way cannot be computed: try the other readings.
    others = match_all(grammar, places, Choices())
    return min(others, key=lambda reading: reading.rank, default=None)


class _Chart:
    """Ends of rules by position. Computations wait for each other on an explicit stack."""

    def __init__(self, grammar: CompiledGrammar, places: Occurrences) -> None:
        self.grammar = grammar
        self.places = places
        self.sentence = places.sentence
        self.ends: dict[_Item, _Ends] = {}

    def whole(self, entry: int) -> Iterator[tuple[bool, int, _Inner]]:
        """Yield the ways in which an entry takes the whole sentence."""
        pattern = self.grammar.rules[self.grammar.start][entry]
        size = self.sentence.size
        root = _Item(~entry, (0, None), pattern.spacing, False)
        for ((place, slot), free_text), (cost, _, trail) in self.solve(root).items():
            if slot is None:
                if self.sentence.solid[place] >= size:
                    yield free_text, cost, _Inner(pattern, entry, False, trail)
                continue
            closed = self.places.close(slot, place, size)
            if closed is not None:
                free, characters = self.text_cost(place, size, closed)
                inner = _Inner(pattern, entry, False, (trail, closed))
                yield free_text or free, cost + characters, inner

    def solve(self, root: _Item) -> _Ends:
        """Return the ends of an item and, on the way, those of all items that it needs."""
        waiting = [(root, self.rule(root))]
        answer: _Ends = {}
        started = False
        while waiting:
            item, computation = waiting[-1]
            self.places.work()
            try:
                needed = computation.send(answer) if started else next(computation)
            except StopIteration as stop:
                waiting.pop()
                self.ends[item] = answer = stop.value
                started = True
                continue
            started = needed in self.ends
            if started:
                answer = self.ends[needed]
            else:
                waiting.append((needed, self.rule(needed)))
        return answer

    def rule(self, item: _Item) -> Generator[_Item, _Ends, _Ends]:
        """Return the best way through one of a rule's patterns to each end."""
        rules, start = self.grammar.rules, self.grammar.start
        ends: _Ends = {}
        for pattern in rules[item.rule] if item.rule >= 0 else (rules[start][~item.rule],):
            ways = yield from self.pattern(pattern, item)
            self.places.work(len(ways))
            for end, (cost, trail) in ways.items():
                if end not in ends or cost < ends[end][0]:
                    ends[end] = (cost, pattern, trail)
        return ends

    def pattern(self, pattern: Pattern, item: _Item) -> _Solving:
        """Return the best way through a pattern to each end."""
        ways: _Ways = {_End(item.position, False): (0, None)}
        for index, step in enumerate(pattern.steps):
            after = yield from self.step(pattern, index, item, ways)
            match step.repeat:
                case Repeat.ONCE:
                    ways = after
                case Repeat.OPTIONAL:
                    ways = _merged(after, ways)
                case Repeat.ANY:
                    ways = yield from self.again(pattern, index, item, ways, after)
                case Repeat.SOME:
                    ways = yield from self.again(pattern, index, item, {}, after)
            if not ways:
                break
        return ways

    def again(
        self, pattern: Pattern, index: int, item: _Item, before: _Ways, after: _Ways
    ) -> _Solving:
        """Return the ways through a step that is repeated after it was read once."""
        ways = dict(before)
        self.places.work(len(ways) + len(after))
        while better := {
            end: way for end, way in after.items() if end not in ways or way[0] < ways[end][0]
        }:
            ways.update(better)
            after = yield from self.step(pattern, index, item, better)
        return ways

    def step(self, pattern: Pattern, index: int, item: _Item, ways: _Ways) -> _Solving:
        """Return the ways through one step after some ways through the steps before it."""
        step = pattern.steps[index]
        optional = item.optional or step.repeat in (Repeat.OPTIONAL, Repeat.ANY)
        gain = PART if item.optional or step.repeat is not Repeat.ONCE else PART + REQUIRED
        after: _Ways = {}
        for (position, free), (cost, trail) in ways.items():
            lead = item.lead if position == item.position else pattern.spacing
            self.places.work()
            match step.part:
                case Reference(rule=rule):
                    ends = yield _Item(rule, position, lead, optional)
                    self.places.work(len(ends))
                    for end, (more, inner, events) in ends.items():
                        reached = _End(end.position, free or end.free_text)
                        call = _Inner(inner, index, optional, events)
                        _keep(after, reached, cost + more, (trail, call))
                case TextSlot() as slot:
                    for start, text_free, more, events in self.openings(position, lead, trail):
                        reached = _End((start, slot), free or text_free)
                        opened = (events, Opened(slot, index, start))
                        _keep(after, reached, cost + more - gain, opened)
                case Phrase() | NumberSlot() as part:
                    gained = gain * (len(part.words) if isinstance(part, Phrase) else 1)
                    for start, place, text_free, more, events in self.parts(
                        part, position, lead, pattern.spacing, trail
                    ):
                        reached = _End((place, None), free or text_free)
                        took = (events, Took(index, start, place))
                        _keep(after, reached, cost + more - gained, took)
        return after

    def parts(
        self,
        part: Phrase | NumberSlot,
        position: Position,
        lead: Spacing,
        spacing: Spacing,
        trail: _Trail,
    ) -> Iterator[tuple[int, int, bool, int, _Trail]]:
        """Yield start and end of a phrase or a number at a position; whether it ends free text, the
        cost of that, and the events before it.
        """
        place, slot = position
        if slot is None:
            found = self.places.next(part, place, lead, spacing)
            if found is not None:
                yield *found, False, 0, trail
            return
        for start, end in self.places.after_text(part, place, lead, spacing):
            closed = self.places.close(slot, place, start)
            if closed is not None:
                yield start, end, *self.text_cost(place, start, closed), (trail, closed)

    def openings(
        self, position: Position, lead: Spacing, trail: _Trail
    ) -> Iterator[tuple[int, bool, int, _Trail]]:
        """Yield the places where a text capture can begin; the rest as for `parts`."""
        place, slot = position
        if slot is None:
            start = self.places.text_start(place, lead)
            if start is not None:
                yield start, False, 0, trail
            return
        for start in self.places.divisions(place):
            closed = self.places.close(slot, place, start)
            if closed is not None:
                yield start, *self.text_cost(place, start, closed), (trail, closed)

    def text_cost(self, opened: int, end: int, closed: Closed) -> tuple[bool, int]:
        """Return whether a text capture is free text, and the number of its characters."""
        if closed.value is not UNDEFINED:
            return False, 0
        return True, self.sentence.trimmed[end] - self.sentence.solid[opened]

    def events(self, root: _Inner) -> list[Event]:
        """Return the events of a way, first to last."""
        events: list[Event] = []
        pending: list[Event | _Inner] = [root]
        while pending:
            event = pending.pop()
            self.places.work()
            if not isinstance(event, _Inner):
                events.append(event)
                continue
            events.append(Enter(event.pattern, event.step, event.optional))
            pending.append(Leave())
            trail = event.trail
            while trail is not None:
                trail, last = trail
                pending.append(last)
        return events


def _keep(ways: _Ways, end: _End, cost: int, trail: _Trail) -> None:
    """Add a way to an end unless one is known that is as good."""
    if end not in ways or cost < ways[end][0]:
        ways[end] = (cost, trail)


def _merged(first: _Ways, second: _Ways) -> _Ways:
    """Return the better way to each end; the first of two that are as good."""
    merged = dict(first)
    for end, (cost, trail) in second.items():
        _keep(merged, end, cost, trail)
    return merged
