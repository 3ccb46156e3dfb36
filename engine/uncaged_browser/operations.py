"""Operations of a browser: their names, what each may change, and their parameters.

This table is the one place for them: bodies of effects, messages between processes and the tools of
an agent are read by it. ``read_operation({"do": "click", "target": […]})`` gives a `Click`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from dataclasses import field as dataclass_field
from dataclasses import fields as dataclass_fields
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, cast, get_args, get_origin, get_type_hints

from uncaged_bundles import fields, shapes

from .elements.facts import ElementFacts, read_facts
from .elements.targets import ElementName, read_frames, read_target
from .expectations import PageExpectation, read_expectation

__all__ = ["OPERATIONS", "Effect", "Operation", "read_operation", "write_operation"]

Effect = Literal["reads", "navigates", "acts"]
"""reads: repeated after a crash. navigates: loads another page. acts: never repeated unasked."""
Form = Literal["html", "clean", "text"]
Direction = Literal["up", "down", "left", "right", "top", "bottom"]
Moment = Literal["load", "navigation", "idle", "element", "attached", "gone"]
MouseButton = Literal["left", "middle", "right"]
DEFAULT_TIMEOUT_S = 10.0
MAX_TIMEOUT_S = 180.0


def _timeout(value: object, path: shapes.Path) -> float:
    if shapes.positive(value, path) > MAX_TIMEOUT_S:
        raise shapes.ShapeError(path, f"is at most {MAX_TIMEOUT_S:g} seconds")
    return shapes.positive(value, path)


def _point(value: object, path: shapes.Path) -> list[float]:
    numbers = [
        shapes.number(item, (*path, index)) for index, item in enumerate(shapes.items(value, path))
    ]
    if len(numbers) != 2:
        raise shapes.ShapeError(path, "is a list of x and y")
    return numbers


def _file_names(value: object, path: shapes.Path) -> list[str]:
    return [value] if isinstance(value, str) else shapes.texts(value, path)


Alternatives = Annotated[Sequence[ElementName], read_target]
MaybeTarget = Annotated[Sequence[ElementName] | None, read_target]
Frames = Annotated[Sequence[Sequence[ElementName]], read_frames]
Timeout = Annotated[float, _timeout]
MaybeExpectation = Annotated[PageExpectation | None, read_expectation]
MaybeFacts = Annotated[ElementFacts | None, read_facts]
Filled = Annotated[str, shapes.filled]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabs(Operation):
    """List the tabs: ``[{"tab", "url", "title", "current"}]``."""

    do: ClassVar[str] = "tabs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(Navigation):
    """Open an address in a new tab, which becomes the current one."""

    do: ClassVar[str] = "open"
    url: Filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(Operation):
    """Close a tab."""

    do: ClassVar[str] = "close"
    effect: ClassVar[Effect] = "acts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch(Operation):
    """Make a tab the current one: by its id, or by words of its title or address."""

    do: ClassVar[str] = "switch"
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Navigate(Navigation):
    """Load an address in the current tab, or open one if there is none."""

    do: ClassVar[str] = "navigate"
    url: Filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Back(Navigation):
    do: ClassVar[str] = "back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward(Navigation):
    do: ClassVar[str] = "forward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload(Navigation):
    do: ClassVar[str] = "reload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address(Operation):
    """Return ``{"tab", "url", "title"}`` of a tab."""

    do: ClassVar[str] = "address"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadText(Operation):
    """Return the visible text of the page, or of one element."""

    do: ClassVar[str] = "text"
    target: MaybeTarget = None
    frame: Frames = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadHtml(Operation):
    """Return the page's HTML. form: html as it is; clean without scripts, styles and comments."""

    do: ClassVar[str] = "html"
    form: Annotated[Form, shapes.one_of(*get_args(Form)), "as"] = "html"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadView(Operation):
    """Return the page view: roles, names and states as short text, in which each element that can
    be operated has a reference. more: the reference of a part that was cut, to show it. words: show
    only the parts that have them. characters: of the view; None is a twelfth of the page's HTML.
    depth: of the tree; None for all.
    """

    do: ClassVar[str] = "view"
    target: MaybeTarget = None
    frame: Frames = ()
    more: str = ""
    words: str = ""
    characters: Annotated[int | None, shapes.positive_whole] = None
    depth: Annotated[int | None, shapes.positive_whole] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadElements(Operation):
    """Return facts about the operable elements of the page or of a frame. number: of an element,
    from 0, whose alternatives are returned under ``names``. also: a tag whose elements are listed
    although nothing says that they are operable. inner: return the alternatives of each frame in it
    under ``inner``, too. target: of one element, operable or not, whose alternatives alone are
    returned, with those of the frames around it.
    """

    do: ClassVar[str] = "elements"
    target: MaybeTarget = None
    frame: Frames = ()
    number: Annotated[int | None, shapes.whole_between(0, 10_000)] = None
    also: str = ""
    inner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadForms(Operation):
    """Return the forms of the page: labelled fields with types and options, and the buttons that
    send each. number: of a form, whose fields and buttons have their alternatives under ``names``.
    """

    do: ClassVar[str] = "forms"
    frame: Frames = ()
    number: Annotated[int | None, shapes.whole_between(0, 10_000)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadActions(Operation):
    """Return what can be done on the page and in its frames: forms with typed parameters, links,
    buttons, landmarks, and the actions that the page registers. name: of one, which is returned
    with what is needed to perform it.
    """

    do: ClassVar[str] = "actions"
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAction(Operation):
    """Call an action that the page registers, and return its result as text."""

    do: ClassVar[str] = "call"
    effect: ClassVar[Effect] = "acts"
    name: Filled
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screenshot(Operation):
    """Return a picture of the page as PNG in Base64. full: the whole page, not what is shown."""

    do: ClassVar[str] = "screenshot"
    target: MaybeTarget = None
    frame: Frames = ()
    full: bool = False


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
class Follow(Navigation):
    """Follow a link: by words of its text, or by its position among the visible links, from 1."""

    do: ClassVar[str] = "follow"
    words: str = ""
    position: Annotated[int | None, shapes.positive_whole] = None


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
    options: Annotated[Sequence[str], _file_names]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetChecked(ElementOperation):
    """Set a check box or a radio button."""

    do: ClassVar[str] = "check"
    checked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload(ElementOperation):
    """Choose files for a file input."""

    do: ClassVar[str] = "upload"
    files: Annotated[Sequence[str], _file_names]


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
    """Scroll the page by a screen, to an end, or until an element is visible."""

    do: ClassVar[str] = "scroll"
    direction: Annotated[Direction, shapes.one_of(*get_args(Direction))] = "down"
    target: MaybeTarget = None
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


OPERATIONS: Mapping[str, type[Operation]] = {
    cls.do: cls
    for cls in (
        Tabs, Open, Close, Switch, Navigate, Back, Forward, Reload, Address, ReadText, ReadHtml, ReadView, ReadElements,
        ReadForms, ReadActions, CallAction, Screenshot, Click, Follow, Fill, Type, Press, Select, SetChecked, Upload, Hover, Drag, Scroll,
        Zoom, WaitFor,
    )
}  # fmt: skip
"""Operations by name."""


def read_operation(
    body: object,
    path: shapes.Path = ("browser",),
    table: Mapping[str, type[Operation]] = OPERATIONS,
) -> Operation:
    """Return the operation that a mapping describes.

    Args:
        table: the operations that it may be.
    Raises:
        ShapeError: the name or a parameter is unknown or wrong; the message has its path.
    """
    mapping = dict(shapes.mapping(body, path))
    do = shapes.text(shapes.required(mapping, "do", path), (*path, "do"))
    cls = table.get(do)
    if cls is None:
        shapes.known_keys({do: None}, tuple(table), (*path, "do"))
        raise AssertionError(do)
    del mapping["do"]
    return fields.read(cls, mapping, path)


def write_operation(operation: Operation) -> dict[str, object]:
    """Return an operation as the mapping that `read_operation` reads; defaults are left out."""
    hints = _hints_of(operation.do)
    body: dict[str, object] = {"do": operation.do}
    for field in dataclass_fields(operation):
        value = getattr(operation, field.name)
        if field.default is not MISSING and value == field.default:
            continue
        hint = hints[field.name]
        notes = hint.__metadata__ if get_origin(hint) is Annotated else ()
        key = next((note for note in notes if isinstance(note, str)), field.name)
        body[key] = _data(value)
    return body


@cache
def _hints_of(do: str) -> Mapping[str, Any]:
    return get_type_hints(OPERATIONS[do], include_extras=True)


def _data(value: object) -> object:
    if isinstance(value, ElementName | ElementFacts | PageExpectation):
        return value.document()
    if isinstance(value, list | tuple):
        return [_data(item) for item in cast("Sequence[Any]", value)]
    return value
