"""Operations that act on a page or its elements, scroll it, or wait for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Annotated, ClassVar, Literal, get_args

from uncaged_bundles import shapes

from ..elements.facts import ElementFacts, read_facts
from .operation import (
    Alternatives,
    Effect,
    ElementOperation,
    Filled,
    Frames,
    MaybeFacts,
    MaybeTarget,
    Operation,
    Texts,
)

__all__ = [
    "CallAction", "Click", "Drag", "Fill", "Hover", "Press", "Scroll", "Select", "SetChecked", "Type", "Upload",
    "WaitFor", "Zoom",
]  # fmt: skip

Direction = Literal["up", "down", "left", "right", "top", "bottom"]
Moment = Literal["load", "navigation", "idle", "element", "attached", "gone"]
MouseButton = Literal["left", "middle", "right"]


def _point(value: object, path: shapes.Path) -> list[float]:
    numbers = [
        shapes.number(item, (*path, index)) for index, item in enumerate(shapes.items(value, path))
    ]
    if len(numbers) != 2:
        raise shapes.ShapeError(path, "is a list of x and y")
    return numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAction(Operation):
    """Call an action that the page registers, and return its result as text."""

    do: ClassVar[str] = "call"
    effect: ClassVar[Effect] = "acts"
    name: Filled
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Click(ElementOperation):
    """Click an element. times: 2 is a double click. wait: for the page that the click loads.
    offset: x and y from the element's upper left corner, in pixels.
    """

    do: ClassVar[str] = "click"
    button: Annotated[MouseButton, shapes.one_of(*get_args(MouseButton))] = "left"
    times: Annotated[int, shapes.whole_between(1, 3)] = 1
    wait: bool = False
    offset: Annotated[Sequence[float] | None, _point] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill(ElementOperation):
    """Replace the content of a field. text may be ``secret:NAME``. submit: press Enter after it."""

    do: ClassVar[str] = "fill"
    text: str
    submit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Type(Operation):
    """Type text by single keys, into an element or where the focus is."""

    do: ClassVar[str] = "type"
    effect: ClassVar[Effect] = "acts"
    text: str
    target: MaybeTarget = None
    frame: Frames = ()
    facts: MaybeFacts = dataclass_field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Press(Operation):
    """Press a key or a combination such as ``Control+A``."""

    do: ClassVar[str] = "press"
    effect: ClassVar[Effect] = "acts"
    key: Filled
    target: MaybeTarget = None
    frame: Frames = ()
    facts: MaybeFacts = dataclass_field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(ElementOperation):
    """Select options of a list by their labels or values."""

    do: ClassVar[str] = "select"
    options: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class SetChecked(ElementOperation):
    """Set a check box or a radio button."""

    do: ClassVar[str] = "check"
    checked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload(ElementOperation):
    """Choose files for a file input."""

    do: ClassVar[str] = "upload"
    files: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Hover(ElementOperation):
    do: ClassVar[str] = "hover"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drag(ElementOperation):
    """Drag an element onto another, which is in the same frame, or within itself. offset,
    onto_offset: where it is held and dropped, from the upper left corners, in pixels.
    """

    do: ClassVar[str] = "drag"
    onto: Alternatives
    offset: Annotated[Sequence[float] | None, _point] = None
    onto_offset: Annotated[Sequence[float] | None, _point] = None
    onto_facts: Annotated[ElementFacts | None, read_facts, "ontoFacts"] = dataclass_field(
        default=None, compare=False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scroll(Operation):
    """Scroll the page by a screen, to an end, or until an element is visible. area: an element with
    scroll bars of its own, which is scrolled in place of the page.
    """

    do: ClassVar[str] = "scroll"
    direction: Annotated[Direction, shapes.one_of(*get_args(Direction))] = "down"
    target: MaybeTarget = None
    area: MaybeTarget = None
    frame: Frames = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Zoom(Operation):
    """Zoom the page: 1 is its own size."""

    do: ClassVar[str] = "zoom"
    factor: Annotated[float, shapes.positive]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFor(Operation):
    """Wait for a moment: the page's load, a navigation, an idle network, an element that appears or
    goes. attached: one that is in the document, though it may be invisible.
    """

    do: ClassVar[str] = "wait"
    until: Annotated[Moment, shapes.one_of(*get_args(Moment)), "for"] = "load"
    target: MaybeTarget = None
    frame: Frames = ()
