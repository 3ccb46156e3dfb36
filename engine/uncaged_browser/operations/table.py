"""Table of the operations, and their form as JSON data.

The table is the one place for them: bodies of effects, messages between processes and the tools of
an agent are read by it. ``read_operation({"do": "click", "target": […]})`` gives a `Click`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from dataclasses import fields as dataclass_fields
from functools import cache
from typing import Annotated, Any, cast, get_origin, get_type_hints

from uncaged_bundles import fields, shapes

from ..elements.facts import ElementFacts
from ..elements.targets import ElementName
from ..expectations import PageExpectation
from .acting import (
    CallAction,
    Click,
    Drag,
    Fill,
    Hover,
    Press,
    Scroll,
    Select,
    SetChecked,
    Type,
    Upload,
    WaitFor,
    Zoom,
)  # fmt: skip
from .operation import Operation
from .person import OpenSettings, ShowStatus, Speak, StopSpeaking
from .reading import ReadActions, ReadElements, ReadForms, ReadHtml, ReadText, ReadView, Screenshot
from .tabs import Address, Back, Close, Follow, Forward, Navigate, Open, Reload, Switch, Tabs

__all__ = ["OPERATIONS", "read_operation", "write_operation"]

OPERATIONS: Mapping[str, type[Operation]] = {
    cls.do: cls
    for cls in (
        Tabs, Open, Close, Switch, Navigate, Back, Forward, Reload, Address, ReadText, ReadHtml, ReadView, ReadElements,
        ReadForms, ReadActions, CallAction, Screenshot, Click, Follow, Fill, Type, Press, Select, SetChecked, Upload, Hover, Drag, Scroll,
        Zoom, WaitFor, Speak, StopSpeaking, ShowStatus, OpenSettings,
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
