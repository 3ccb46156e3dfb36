"""Captures that are still to be filled in: the value so far, and their places in it."""

from __future__ import annotations

from collections.abc import Iterator

from uncaged_bundles.records import dataclass

from uncaged_dispatcher.grammar.occurrences import Occurrences
from uncaged_dispatcher.grammar.readings import build_partial
from uncaged_dispatcher.grammar.states import Activation, Trail, events_of
from uncaged_dispatcher.grammar.syntax import (
    ArrayValue,
    Expression,
    ObjectValue,
    PartValue,
    Property,
    Spread,
    Variable,
)


@dataclass(frozen=True, slots=True, eq=False)
class Hole:
    """A capture of a pattern that has no value yet; ``trail`` has the events before it."""

    activation: Activation
    step: int
    trail: Trail


def unfilled(places: Occurrences, hole: Hole) -> tuple[object, tuple[str, ...]]:
    """Return the value of a sentence so far, and the paths of the hole in it."""
    paths = [""]
    activation: Activation | None = hole.activation
    step = hole.step
    while activation is not None:
        pattern = activation.pattern
        variable = getattr(pattern.steps[step].part, "variable", "")
        value = pattern.value
        paths = [] if value is None else list(_paths(value, variable, step, paths))
        step = activation.resume
        activation = activation.around
    events = events_of(hole.trail)
    places.work(len(events))
    return build_partial(places.sentence, events, places.work), tuple(paths)


def _paths(value: Expression, variable: str, step: int, inner: list[str]) -> Iterator[str]:
    """Yield the paths of a variable's or a step's value in an object, below which the hole has the
    paths *inner*.
    """
    match value:
        case Variable(name=name) if name == variable:
            yield from inner
        case PartValue(index=index) if index == step:
            yield from inner
        case ObjectValue(entries=entries):
            for entry in entries:
                if isinstance(entry, Property):
                    for path in _paths(entry.value, variable, step, inner):
                        yield f"{entry.name}.{path}" if path else entry.name
        case ArrayValue(items=items):
            for place, item in enumerate(items):
                if not isinstance(item, Spread):
                    for path in _paths(item, variable, step, inner):
                        yield f"{place}.{path}" if path else str(place)
        case _:
            pass
