"""Reader for JSON mappings by the fields of annotated classes. It serves the limits of policies and
the bodies of effects.

An annotation is a type (`str`, `bool`, `int`, `float`, `object`, a `Literal`, `Mapping[str, T]`,
`list[T]`, `T | None`). In ``Annotated[type, …]``, a function replaces the type's own check, and a
text is the key if it is not the field's name.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from . import shapes
from .records import without_default

Check = Callable[[object, shapes.Path], object]
Made = TypeVar("Made")


class Shape:
    """The fields of one annotated class. checks: field name and check, by key. required: keys
    without a default.
    """

    def __init__(self, cls: type) -> None:
        hints = get_type_hints(cls, include_extras=True)
        needed = without_default(cls)
        self.checks: dict[str, tuple[str, Check]] = {}
        required = []
        for name, hint in hints.items():
            if get_origin(hint) is ClassVar:
                continue
            notes = hint.__metadata__ if get_origin(hint) is Annotated else ()
            key = next((note for note in notes if isinstance(note, str)), name)
            self.checks[key] = (name, _check_of(hint))
            if name in needed:
                required.append(key)
        self.required = tuple(required)

    def values(self, value: object, path: shapes.Path) -> dict[str, Any]:
        """Return the checked values by field name.

        Raises:
            ShapeError: a key is unknown, missing or has a wrong value; the message has its path.
        """
        # the known keys are text, so a mapping with no other needs no look at its keys
        if type(value) is dict and value.keys() <= self.checks.keys():
            mapping: dict[str, object] = value
        else:
            mapping = shapes.mapping(value, path)
            shapes.known_keys(mapping, frozenset(self.checks), path)
        for key in self.required:
            shapes.required(mapping, key, path)
        found = {}
        for key, inner in mapping.items():
            name, check = self.checks[key]
            found[name] = check(inner, (*path, key))
        return found


_SHAPES: dict[type, Shape] = {}


def shape_of(cls: type) -> Shape:
    """Return the shape of a class; its annotations are evaluated once."""
    shape = _SHAPES.get(cls)
    if shape is None:
        shape = _SHAPES[cls] = Shape(cls)
    return shape


def read(cls: type[Made], value: object, path: shapes.Path) -> Made:
    """Return a mapping as an instance of an annotated dataclass.

    Raises:
        ShapeError: a key is unknown, missing or has a wrong value; the message has its path.
    """
    values = shape_of(cls).values(value, path)
    try:
        return cls(**values)
    except shapes.ShapeError as exc:  # from a class that compares its fields
        raise shapes.ShapeError((*path, *exc.path), exc.problem) from None


def _check_of(hint: Any) -> Check:
    """Return the check that an annotation means."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        own = next((note for note in hint.__metadata__ if callable(note)), None)
        return own if own is not None else _check_of(arguments[0])
    if origin in (Union, types.UnionType):
        return _or_none(*(part for part in arguments if part is not types.NoneType))
    if origin is Literal:
        return shapes.one_of(*arguments)
    if origin is list:
        return _items(_check_of(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _entries(_check_of(arguments[1]))
    return _CHECKS[hint]


_CHECKS: Mapping[Any, Check] = {
    object: lambda value, _path: value,
    Any: lambda value, _path: value,
    str: shapes.text,
    bool: shapes.truth,
    int: shapes.whole,
    float: shapes.number,
}


def _or_none(*hints: Any) -> Check:
    [hint] = hints  # a union of two types has a check of its own
    inner = _check_of(hint)
    return lambda value, path: None if value is None else inner(value, path)


def _items(inner: Check) -> Check:
    def check(value: object, path: shapes.Path) -> list[object]:
        return [inner(item, (*path, index)) for index, item in enumerate(shapes.items(value, path))]

    return check


def _entries(inner: Check) -> Check:
    def check(value: object, path: shapes.Path) -> dict[str, object]:
        return {key: inner(item, (*path, key)) for key, item in shapes.mapping(value, path).items()}

    return check
