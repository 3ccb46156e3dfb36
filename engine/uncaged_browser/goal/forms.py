"""Forms of a page as the operation `forms` lists them: labelled fields, and buttons that send."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from uncaged_bundles import fields, shapes
from uncaged_bundles.records import dataclass

from ..elements.targets import ElementName, read_target

Made = TypeVar("Made")

__all__ = ["FormButton", "FormField", "FormOption", "PageForm", "read_forms"]


def _names(value: object, path: shapes.Path) -> Sequence[ElementName]:
    return read_target(value, path) if shapes.items(value, path) else ()


def _each(cls: type[Made]) -> Callable[[object, shapes.Path], list[Made]]:
    """Return the check of a list of objects with the fields of a class."""

    def read(value: object, path: shapes.Path) -> list[Made]:
        return [
            fields.read(cls, one, (*path, at)) for at, one in enumerate(shapes.items(value, path))
        ]

    return read


Names = Annotated[Sequence[ElementName], _names]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOption:
    """Option of a list, or a radio button of a group. fixed: it cannot be chosen."""

    label: str
    fixed: bool = False
    names: Names = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FormButton:
    """Button that sends a form to the address *action*."""

    label: str
    action: str
    fixed: bool = False
    names: Names = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """Field of a form. key: its name in the page's HTML. kind: ``radio`` for a group, ``select``,
    ``textarea``, ``password`` for what is secret, else the type of the input. fixed: it cannot be
    changed. problem: what the browser says of its value.
    """

    labels: Annotated[Sequence[str], shapes.texts]
    kind: str
    key: str = ""
    required: bool = False
    filled: bool = False
    fixed: bool = False
    valid: bool = True
    problem: str = ""
    max_length: Annotated[int, shapes.whole, "maxLength"] = 0
    multiple: bool = False
    options: Annotated[Sequence[FormOption], _each(FormOption)] = ()
    names: Names = ()

    @property
    def label(self) -> str:
        """Return the text by which a message names it."""
        return self.labels[0] if self.labels else f"a field of type {self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageForm:
    """One form. number: of it on the page. action: the address that it sends to. loose: it is a
    group of fields outside of forms, with the buttons beside them.
    """

    number: int
    name: str
    method: str
    action: str
    fields: Annotated[Sequence[FormField], _each(FormField)]
    buttons: Annotated[Sequence[FormButton], _each(FormButton)]
    loose: bool = False

    def __str__(self) -> str:
        labels = ", ".join(field.label for field in self.fields)
        return f'"{self.name}" ({labels})' if self.name else f"({labels})"


def read_forms(answer: Mapping[str, Any]) -> list[PageForm]:
    """Read the answer of the operation `forms`.

    Raises:
        ShapeError: it is malformed.
    """
    return _each(PageForm)(answer.get("forms"), ("forms",))
