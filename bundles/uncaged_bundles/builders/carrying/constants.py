"""What a bundle's constants come to is what they are in the author's modules; anything that changes
them later is found out here.

A table that decorators fill, a list that another module appends to: their text alone would be
carried, and the bundle would decide otherwise than the definition without a word. So the text is
executed once, definitions only, and the values are compared.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from types import ModuleType
from typing import Any

from uncaged_bundles.errors import BundleError
from uncaged_bundles.shapes import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A name that was carried from a loaded module, and where it is defined."""

    name: str
    module: str
    place: str


def check_alike(source: bytes, bindings: Iterable[Binding]) -> None:
    """Execute the definitions of a bundle and compare them with the modules that they come from.

    Raises:
        BundleError: a value differs, or a definition needs something that a bundle has only later.
    """
    namespace: dict[str, Any] = {}
    try:
        exec(compile(source, "<bundle>", "exec", dont_inherit=True), namespace)  # noqa: S102 - the author's own definitions, which have run already
    except NameError as exc:
        raise BundleError(
            f"the carried definitions do not load by themselves: {exc}; does a module import one that imports it?"
        ) from exc
    for binding in bindings:
        there, here = vars(sys.modules[binding.module])[binding.name], namespace[binding.name]
        if not alike(there, here):
            raise BundleError(
                f"{binding.place}: {binding.name!r} is {shown(there)}, but its definition alone makes {shown(here)}; "
                "what changes it later is not carried: define it in one go"
            )


def alike(there: object, here: object, seen: frozenset[tuple[int, int]] = frozenset()) -> bool:
    """Return whether two values made from the same text hold the same plain data, attributes
    included; the rest counts by its kind.
    """
    pair = (id(there), id(here))
    if pair in seen:  # data that contains itself
        return True
    if type(there).__name__ != type(here).__name__:
        return False
    inner = seen | {pair}
    match there, here:
        case (str() | bytes() | int() | float() | complex() | None, _):
            return repr(there) == repr(here)
        case (set() | frozenset(), set() | frozenset()):
            return len(there) == len(here) and _plain(there) == _plain(here)
        case (dict(), dict()):
            return alike([*there.items()], [*here.items()], inner)
        case (list() | tuple(), list() | tuple()):
            return len(there) == len(here) and all(
                alike(a, b, inner) for a, b in zip(there, here, strict=True)
            )
        case _:
            pass
    return alike(_attributes(there), _attributes(here), inner)


def _plain(values: Iterable[object]) -> set[object]:
    return {value for value in values if isinstance(value, str | bytes | int)}


def _attributes(value: object) -> list[tuple[str, object]]:
    """Return what an object, a class or a function holds by name, without what Python itself puts
    there.
    """
    if isinstance(value, ModuleType):
        return []
    if is_dataclass(value) and not isinstance(value, type):
        return [(part.name, getattr(value, part.name)) for part in fields(value)]
    return [
        (name, item)
        for name, item in getattr(value, "__dict__", {}).items()
        if not name.startswith("_")
    ]
