"""Healings of a step: the new names of a target, and the new text of an expectation, as an outcome
of the step has them under ``healed``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass

from ..elements.facts import ElementFacts, read_facts
from ..elements.targets import ElementName, read_frames, read_target
from ..expectations import PageExpectation, read_expectation
from ..operations import Operation, write_operation

__all__ = [
    "KEYS",
    "Frames",
    "HealedExpectation",
    "HealedTarget",
    "Healing",
    "healed_in",
    "outcome_of",
    "with_healed",
]

Frames = tuple[tuple[ElementName, ...], ...]
KEYS = ("target", "onto")
EXPECT = "expect"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealedTarget:
    """The new names of a target. key: ``target`` or ``onto``. frame: the targets of the frames that
    it is in by now; None if they are the former ones.
    """

    key: str
    before: str
    after: str
    names: tuple[ElementName, ...]
    facts: ElementFacts
    score: float
    why: tuple[str, ...]
    frame: Frames | None = None

    def document(self) -> dict[str, object]:
        """Return the healing as a step's outcome has it."""
        return {
            **_common(self),
            "target": [one.document() for one in self.names],
            "facts": self.facts.document(),
            **self.frame_document(),
        }

    def frame_document(self) -> dict[str, list[object]]:
        """Return the frames as an operation has them; nothing for the former ones."""
        if self.frame is None:
            return {}
        return {"frame": [[one.document() for one in names] for names in self.frame]}

    @classmethod
    def of(cls, fields: Mapping[str, object], path: shapes.Path) -> HealedTarget:
        """Read a healing of a target."""
        key = shapes.text(fields.get("key"), (*path, "key"))
        frame = fields.get("frame")
        return cls(
            key=shapes.one_of(*KEYS)(key, (*path, "key")),
            before=shapes.text(fields.get("from"), (*path, "from")),
            after=shapes.text(fields.get("to"), (*path, "to")),
            names=read_target(fields.get("target"), (*path, "target")),
            facts=read_facts(fields.get("facts"), (*path, "facts")),
            score=shapes.number(fields.get("score"), (*path, "score")),
            why=tuple(shapes.texts(fields.get("why"), (*path, "why"))),
            frame=None if frame is None else read_frames(frame, (*path, "frame")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealedExpectation:
    """The new expectation of a step whose page has a reworded title or heading."""

    before: str
    after: str
    expect: PageExpectation
    score: float
    why: tuple[str, ...]
    key: str = EXPECT

    def document(self) -> dict[str, object]:
        """Return the healing as a step's outcome has it."""
        return {**_common(self), EXPECT: self.expect.document()}

    @classmethod
    def of(cls, fields: Mapping[str, object], path: shapes.Path) -> HealedExpectation:
        """Read a healing of an expectation."""
        return cls(
            before=shapes.text(fields.get("from"), (*path, "from")),
            after=shapes.text(fields.get("to"), (*path, "to")),
            expect=read_expectation(fields.get(EXPECT), (*path, EXPECT)),
            score=shapes.number(fields.get("score"), (*path, "score")),
            why=tuple(shapes.texts(fields.get("why"), (*path, "why"))),
        )


Healing = HealedTarget | HealedExpectation


def _common(healing: Healing) -> dict[str, object]:
    return {
        "key": healing.key,
        "from": healing.before,
        "to": healing.after,
        "score": healing.score,
        "why": list(healing.why),
    }


def with_healed(operation: Operation, healed: Sequence[Healing]) -> dict[str, object]:
    """Return an operation as a mapping with its new targets and expectation."""
    body = write_operation(operation)
    for one in healed:
        if isinstance(one, HealedExpectation):
            body[EXPECT] = one.expect.document()
        else:
            body |= {one.key: [name.document() for name in one.names], **one.frame_document()}
    return body


def outcome_of(answer: object, healed: Sequence[Healing]) -> object:
    """Return the answer of a healed operation with the healing under ``healed``; a second one is
    under its ``also``. Differences that an expectation was healed of are left out.
    """
    if not isinstance(answer, Mapping) or not healed:
        return answer
    document: dict[str, object] = {}
    for one in reversed(healed):
        document = {**one.document(), **({"also": document} if document else {})}
    fits = any(isinstance(one, HealedExpectation) for one in healed)
    kept = {key: value for key, value in answer.items() if key != "drift" or not fits}
    return {**kept, "healed": document}


def healed_in(outcome: object) -> tuple[Healing, ...]:
    """Return the healings that a step's outcome has.

    Raises:
        ShapeError: they are malformed.
    """
    return tuple(_chain(outcome.get("healed"))) if isinstance(outcome, Mapping) else ()


def _chain(value: object) -> Iterator[Healing]:
    path: shapes.Path = ("healed",)
    while value is not None:
        fields = shapes.mapping(value, path)
        is_target = fields.get("key") != EXPECT
        yield HealedTarget.of(fields, path) if is_target else HealedExpectation.of(fields, path)
        value, path = fields.get("also"), (*path, "also")
