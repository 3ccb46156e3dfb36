"""Search for the element of an operation in a page. It yields operations that only read and is sent
their answers, so the same search serves effects and replays.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass, replace

from ..elements.facts import ElementFacts, read_facts
from ..elements.targets import ElementName, read_target
from ..operations import Operation, ReadElements, WaitFor, write_operation
from ..problems import BrowserProblem
from .scoring import NotChosen, choose
from .sought import SoughtElement, sought_of

__all__ = [
    "FIND_S",
    "HealedTarget",
    "HealingResult",
    "Search",
    "begin_search",
    "healed_in",
    "outcome_of",
    "with_healed",
]

FIND_S = 2.0
"""An element is looked for by its own names for so long before others are considered."""
SETTLE_S = 3.0
AGAIN_S = 0.4
KEYS = ("target", "onto")


@dataclass(frozen=True, slots=True, kw_only=True)
class HealedTarget:
    """The new names of a target. key: ``target`` or ``onto``."""

    key: str
    before: str
    after: str
    names: tuple[ElementName, ...]
    facts: ElementFacts
    score: float
    why: tuple[str, ...]

    def document(self) -> dict[str, object]:
        """Return the healing as a step's outcome has it."""
        return {
            "key": self.key,
            "from": self.before,
            "to": self.after,
            "score": self.score,
            "why": list(self.why),
            "target": [one.document() for one in self.names],
            "facts": self.facts.document(),
        }

    @classmethod
    def of(cls, value: object) -> HealedTarget:
        """Read a healing from a step's outcome.

        Raises:
            ShapeError: it is malformed.
        """
        path: shapes.Path = ("healed",)
        fields = shapes.mapping(value, path)
        texts = {key: shapes.text(fields.get(key), (*path, key)) for key in ("key", "from", "to")}
        return cls(
            key=shapes.one_of(*KEYS)(texts["key"], (*path, "key")),
            before=texts["from"],
            after=texts["to"],
            names=read_target(fields.get("target"), (*path, "target")),
            facts=read_facts(fields.get("facts"), (*path, "facts")),
            score=shapes.number(fields.get("score"), (*path, "score")),
            why=tuple(shapes.texts(fields.get("why"), (*path, "why"))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealingResult:
    """healed: the targets with new names; none if `reason` says why none may be used. candidate:
    the element that was not used. found: each target was found by its own names after all.
    """

    healed: tuple[HealedTarget, ...] = ()
    reason: str = ""
    candidate: str = ""
    found: bool = False


Search = Generator[Operation, object, HealingResult]
"""Yields an operation; is sent its answer, or a `BrowserProblem` is thrown in."""


def begin_search(
    operation: Operation, others: Sequence[Operation] = (), values: Sequence[str] = ()
) -> Search:
    """Search for the elements of an operation that was not performed because one was not found.

    Args:
        others: the other operations of the flow. values: of the parameters in the targets; the
            element must have them in its names, too.
    """
    known = [one for other in others for key in KEYS if (one := sought_of(other, key))]
    yield from _tried(WaitFor(until="idle", tab=operation.tab, timeout_s=SETTLE_S))
    healed: list[HealedTarget] = []
    missing = 0
    for key in KEYS:
        sought = sought_of(operation, key)
        if sought is None:
            continue
        if (yield from _is_there(sought)):
            continue
        missing += 1
        found = yield from _one(replace(sought, values=tuple(values)), known)
        if isinstance(found, NotChosen):
            candidate = "" if found.candidate is None else str(found.candidate)
            return HealingResult(reason=found.reason, candidate=candidate)
        healed.append(found)
    return HealingResult(healed=tuple(healed), found=not missing)


def _one(
    sought: SoughtElement, others: Sequence[SoughtElement]
) -> Generator[Operation, object, HealedTarget | NotChosen]:
    first = yield from _choice(sought, others, None)
    if isinstance(first, NotChosen):
        return first
    if (yield from _is_there(sought)):
        return NotChosen(reason="the page is still changing")
    again = yield from _choice(sought, others, first.number)
    if not isinstance(again, tuple) or again[0].facts.names != first.facts.names:
        return NotChosen(reason="the page is still changing", candidate=first.facts)
    chosen, names = again
    return HealedTarget(
        key=sought.key,
        before=str(sought.names[0]),
        after=str(chosen.facts),
        names=names,
        facts=chosen.facts,
        score=chosen.score,
        why=chosen.why,
    )


def _choice(
    sought: SoughtElement, others: Sequence[SoughtElement], number: int | None
) -> Generator[Operation, object, Any]:
    """Choose among the page's elements; with the *number* that was chosen before, return it with
    its names, too.
    """
    operation: Any = sought.operation
    answer = yield from _tried(
        ReadElements(tab=operation.tab, frame=getattr(operation, "frame", ()), number=number)
    )
    try:
        fields = shapes.mapping(answer, ("elements",))
        listed = shapes.items(fields.get("elements"), ("elements",))
        elements = [read_facts(one, ("elements", at)) for at, one in enumerate(listed)]
        chosen = choose(sought, elements, others)
        if number is None or isinstance(chosen, NotChosen):
            return chosen
        if chosen.number != number:
            return NotChosen(reason="the page is still changing")
        return chosen, read_target(fields.get("names"), ("elements", "names"))
    except shapes.ShapeError:
        return NotChosen(reason="the page's elements cannot be read")


def _is_there(sought: SoughtElement) -> Generator[Operation, object, bool]:
    operation: Any = sought.operation
    wait = WaitFor(
        until="element",
        tab=operation.tab,
        target=sought.names,
        frame=getattr(operation, "frame", ()),
        timeout_s=AGAIN_S,
    )
    try:
        yield wait
    except BrowserProblem as exc:
        return exc.kind == "ambiguous"
    return True


def _tried(operation: Operation) -> Generator[Operation, object, object]:
    try:
        answer = yield operation
    except BrowserProblem:
        return None
    return answer


def with_healed(operation: Operation, healed: Sequence[HealedTarget]) -> dict[str, object]:
    """Return an operation as a mapping with its new targets."""
    body = write_operation(operation)
    return {**body, **{one.key: [name.document() for name in one.names] for one in healed}}


def outcome_of(answer: object, healed: Sequence[HealedTarget]) -> object:
    """Return the answer of a healed operation with the healing under ``healed``; that of the second
    target of a drag is under its ``also``.
    """
    if not isinstance(answer, Mapping) or not healed:
        return answer
    first, *rest = (one.document() for one in healed)
    return {**answer, "healed": {**first, **({"also": rest[0]} if rest else {})}}


def healed_in(outcome: object) -> tuple[HealedTarget, ...]:
    """Return the healings that a step's outcome has.

    Raises:
        ShapeError: they are malformed.
    """
    healed = outcome.get("healed") if isinstance(outcome, Mapping) else None
    if healed is None:
        return ()
    fields = shapes.mapping(healed, ("healed",))
    return tuple(HealedTarget.of(one) for one in (fields, fields.get("also")) if one is not None)
