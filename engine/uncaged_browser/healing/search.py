"""Search for the element of an operation in a page. It yields operations that only read and is sent
their answers, so the same search serves effects and replays.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace as changed
from typing import Any, Literal
from urllib.parse import urlsplit

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass, replace

from ..elements.facts import ElementFacts, read_facts
from ..elements.targets import read_target
from ..operations import Operation, ReadElements, WaitFor
from ..problems import BrowserProblem
from .healed import KEYS, Frames, HealedTarget
from .scoring import Chosen, NotChosen, choose
from .sought import SoughtElement, sought_of

__all__ = [
    "FIND_S",
    "MISSING",
    "HealingResult",
    "Reading",
    "Search",
    "begin_search",
    "is_there",
    "run_search",
]

FIND_S = 2.0
"""An element is looked for by its own names for so long before others are considered."""
MISSING = frozenset({"not-found", "ambiguous"})
"""Kinds of the problem of an operation whose element is searched."""
SETTLE_S = 3.0
AGAIN_S = 0.4
FRAME_S = 1.0
MAX_FRAMES = 20
"""Frames of a page that are searched."""
CHANGING = "the page is still changing"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealingResult:
    """healed: the targets with new names; none if `reason` says why none may be used. candidate:
    the element that was not used. found: each target was found by its own names after all.
    """

    healed: tuple[HealedTarget, ...] = ()
    reason: str = ""
    candidate: str = ""
    found: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An operable element of the page. number: within its frame."""

    place: Frames
    number: int
    facts: ElementFacts


Reading = Generator[Operation, object, Any]
"""Yields an operation; is sent its answer, or a `BrowserProblem` is thrown in."""
Search = Generator[Operation, object, HealingResult]


def run_search(search: Reading, look: Callable[[Operation], object]) -> Any:
    """Return what a search returns.

    Args:
        look: performs an operation that only reads, or raises a `BrowserProblem`.
    """
    answer: object = None
    problem: BrowserProblem | None = None
    while True:
        try:
            wanted = search.send(answer) if problem is None else search.throw(problem)
        except StopIteration as stop:
            return stop.value
        problem = None
        try:
            answer = look(wanted)
        except BrowserProblem as exc:
            answer, problem = None, exc


def begin_search(
    operation: Operation, others: Sequence[Operation] = (), values: Sequence[str] = ()
) -> Search:
    """Search for the elements of an operation that was not performed because one was not found, or
    several were.

    Args:
        others: the other operations of the flow. values: of the parameters in the targets; the
            element must have them in its names, too.
    """
    known = [one for other in others for key in KEYS if (one := sought_of(other, key))]
    yield from _tried(WaitFor(until="idle", tab=operation.tab, timeout_s=SETTLE_S))
    healed: list[HealedTarget] = []
    missing = 0
    current: Any = operation
    for key in KEYS:
        sought = sought_of(current, key)
        if sought is None:
            continue
        there = yield from is_there(current, key)
        if there is True:
            continue
        missing += 1
        if there is False and (yield from is_there(current, key, "attached")) is not False:
            return HealingResult(reason="the element is on the page, and not visible")
        several = there is None
        found = yield from _one(replace(sought, values=tuple(values), several=several), known)
        if isinstance(found, NotChosen):
            candidate = "" if found.candidate is None else str(found.candidate)
            return HealingResult(reason=found.reason, candidate=candidate)
        healed.append(found)
        if found.frame is not None:
            current = changed(current, frame=found.frame)
    return HealingResult(healed=tuple(healed), found=not missing)


def is_there(
    operation: Operation, key: str = "target", until: Literal["element", "attached"] = "element"
) -> Reading:
    """Return whether the element of an operation is found by its own names; None if several are.

    Args:
        until: ``attached``: it may be invisible.
    """
    current: Any = operation
    wait = WaitFor(
        until=until,
        tab=operation.tab,
        target=getattr(current, key),
        frame=getattr(current, "frame", ()),
        timeout_s=AGAIN_S,
    )
    try:
        yield wait
    except BrowserProblem as exc:
        return None if exc.kind == "ambiguous" else False
    return True


def _one(
    sought: SoughtElement, others: Sequence[SoughtElement]
) -> Generator[Operation, object, HealedTarget | NotChosen]:
    places = yield from _places(sought.operation)
    first = yield from _choice(sought, others, places)
    if isinstance(first, NotChosen):
        return first
    there = yield from is_there(sought.operation, sought.key)
    if there is not (None if sought.several else False):
        return NotChosen(reason=CHANGING)
    again = yield from _choice(sought, others, places)
    if isinstance(again, NotChosen) or again[1] != first[1]:
        return NotChosen(reason=CHANGING, candidate=first[0].facts)
    chosen, listed = again
    names = yield from _names_of(sought, listed)
    if names is None:
        return NotChosen(reason=CHANGING, candidate=chosen.facts)
    former = tuple(tuple(frame) for frame in getattr(sought.operation, "frame", ()))
    return HealedTarget(
        key=sought.key,
        before=str(sought.names[0]),
        after=str(chosen.facts),
        names=names,
        facts=chosen.facts,
        score=chosen.score,
        why=chosen.why,
        frame=None if listed.place == former else listed.place,
    )


def _choice(
    sought: SoughtElement, others: Sequence[SoughtElement], places: Sequence[Frames]
) -> Generator[Operation, object, tuple[Chosen, Listed] | NotChosen]:
    """Choose among the elements of the page, or of the frames in which the sought one may be."""
    listed: list[Listed] = []
    for place in places:
        answer = yield from _tried(_reading(sought, place))
        listed += _listed(answer, place)
    if not listed:
        return NotChosen(reason="no frame of the page has operable elements")
    chosen = choose(sought, [one.facts for one in listed], others)
    return chosen if isinstance(chosen, NotChosen) else (chosen, listed[chosen.number])


def _names_of(sought: SoughtElement, listed: Listed) -> Reading:
    """Return the names of an element that was listed; None if it is another one by now."""
    answer = yield from _tried(_reading(sought, listed.place, listed.number))
    now = _listed(answer, listed.place)
    if len(now) <= listed.number or now[listed.number].facts.names != listed.facts.names:
        return None
    try:
        fields = shapes.mapping(answer, ("elements",))
        return read_target(fields.get("names"), ("elements", "names"))
    except shapes.ShapeError:
        return None


def _reading(sought: SoughtElement, place: Frames, number: int | None = None) -> ReadElements:
    return ReadElements(tab=sought.operation.tab, frame=place, number=number, also=sought.also)


def _listed(answer: object, place: Frames) -> list[Listed]:
    """Return the elements in an answer; none if it is malformed."""
    try:
        fields = shapes.mapping(answer, ("elements",))
        facts = [
            read_facts(one, ("elements", at))
            for at, one in enumerate(shapes.items(fields.get("elements"), ("elements",)))
        ]
    except shapes.ShapeError:
        return []
    return [Listed(place=place, number=number, facts=one) for number, one in enumerate(facts)]


def _places(operation: Operation) -> Generator[Operation, object, tuple[Frames, ...]]:
    """Return the frames in which the element of an operation may be: the one that is named, or all
    frames of the page's host that are as deep.
    """
    frame: Frames = tuple(tuple(one) for one in getattr(operation, "frame", ()))
    if not frame:
        return ((),)
    named = ReadElements(tab=operation.tab, frame=frame, timeout_s=FRAME_S)
    if (yield from _tried(named)) is not None:
        return (frame,)
    level: list[Frames] = [()]
    host = ""
    for _ in range(len(frame) + 1):
        inner: list[Frames] = []
        here: list[Frames] = []
        for place in level[:MAX_FRAMES]:
            answer = yield from _tried(
                ReadElements(tab=operation.tab, frame=place, inner=True, timeout_s=FRAME_S)
            )
            host = host or _host_of(answer)
            if not place or _host_of(answer) in (host, ""):
                here.append(place)
                inner += ((*place, names) for names in _frames_in(answer))
        if here and len(here[0]) == len(frame):
            return tuple(here)
        level = inner
    return ()


def _frames_in(answer: object) -> Iterator[tuple[Any, ...]]:
    try:
        fields = shapes.mapping(answer, ("elements",))
        for one in shapes.items(fields.get("inner"), ("elements", "inner")):
            yield read_target(one, ("elements", "inner"))
    except shapes.ShapeError:
        return


def _host_of(answer: object) -> str:
    """Return the host of the page of an answer; empty for one without an address of its own."""
    url = answer.get("url") if isinstance(answer, dict) else None
    return urlsplit(str(url or "")).hostname or ""


def _tried(operation: Operation) -> Generator[Operation, object, object]:
    try:
        answer = yield operation
    except BrowserProblem:
        return None
    return answer
