"""Operations that read a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, get_args

from uncaged_bundles import shapes

from .operation import Frames, MaybeTarget, Operation

__all__ = [
    "ReadActions", "ReadElements", "ReadForms", "ReadHtml", "ReadText", "ReadView", "Screenshot",
]  # fmt: skip

Form = Literal["html", "clean", "automatic", "knowledge", "text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadText(Operation):
    """Return the visible text of the page, or of one element."""

    do: ClassVar[str] = "text"
    target: MaybeTarget = None
    frame: Frames = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadHtml(Operation):
    """Return the page's HTML. form: html as it is; clean without scripts, styles and comments;
    automatic with what is needed to operate the page; knowledge with what the page says. The last
    two have shadow trees in their places, and the frames that are shown under ``frames``.
    """

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
class Screenshot(Operation):
    """Return a picture of the page as PNG in Base64. full: the whole page, not what is shown."""

    do: ClassVar[str] = "screenshot"
    target: MaybeTarget = None
    frame: Frames = ()
    full: bool = False
