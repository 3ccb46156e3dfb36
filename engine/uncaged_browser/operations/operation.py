"""Operation of a browser: the fields that all have, and the types of the others' fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Annotated, ClassVar, Literal

from uncaged_bundles import shapes

from ..elements.facts import ElementFacts, read_facts
from ..elements.targets import ElementName, read_frames, read_target
from ..expectations import PageExpectation, read_expectation

__all__ = [
    "MAX_TIMEOUT_S", "Alternatives", "Effect", "ElementOperation", "Filled", "Frames", "MaybeFacts",
    "MaybeTarget", "Navigation", "Operation", "Texts", "Timeout",
]  # fmt: skip

Effect = Literal["reads", "navigates", "acts"]
"""reads: repeated after a crash. navigates: loads another page. acts: never repeated unasked."""
DEFAULT_TIMEOUT_S = 10.0
MAX_TIMEOUT_S = 180.0


def _timeout(value: object, path: shapes.Path) -> float:
    if shapes.positive(value, path) > MAX_TIMEOUT_S:
        raise shapes.ShapeError(path, f"is at most {MAX_TIMEOUT_S:g} seconds")
    return shapes.positive(value, path)


def _texts(value: object, path: shapes.Path) -> list[str]:
    return [value] if isinstance(value, str) else shapes.texts(value, path)


Alternatives = Annotated[Sequence[ElementName], read_target]
MaybeTarget = Annotated[Sequence[ElementName] | None, read_target]
Frames = Annotated[Sequence[Sequence[ElementName]], read_frames]
Timeout = Annotated[float, _timeout]
MaybeExpectation = Annotated[PageExpectation | None, read_expectation]
MaybeFacts = Annotated[ElementFacts | None, read_facts]
Filled = Annotated[str, shapes.filled]
Texts = Annotated[Sequence[str], _texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Base of all operations. do: its name. tab: the tab's id; None is the current one. expect:
    of the page afterwards; differences are in the answer under ``drift``. find_s: how long the
    element is looked for; None is as long as the operation may take.
    """

    do: ClassVar[str] = ""
    effect: ClassVar[Effect] = "reads"
    tab: str | None = None
    timeout_s: Timeout = DEFAULT_TIMEOUT_S
    expect: MaybeExpectation = None
    find_s: Annotated[float | None, _timeout] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigation(Operation):
    """Base of operations that load a page."""

    effect: ClassVar[Effect] = "navigates"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementOperation(Operation):
    """Base of operations on one element. frame: the targets of the frames that it is in, the
    outermost first. facts: noted with the target, for the case that it is not found.
    """

    effect: ClassVar[Effect] = "acts"
    target: Alternatives
    frame: Frames = ()
    facts: MaybeFacts = dataclass_field(default=None, compare=False)
