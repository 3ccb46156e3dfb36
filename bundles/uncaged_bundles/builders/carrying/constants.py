"""Comparison of a bundle's constants with their values in the author's modules.

Only the text of a definition is carried. If decorators fill a table, or another module appends to a
list, the bundle would silently behave differently. So its definitions are executed once, and the
values are compared.
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
    """A carried name, the loaded module that it is from, and the place of its definition."""

    name: str
    module: str
    place: str


def check_constants(source: bytes, bindings: Iterable[Binding]) -> None:
    """Execute the definitions of a bundle and compare their values with the author's modules.

    Raises:
        BundleError: a value differs, or a definition needs a name that is defined only later.
    """
    namespace: dict[str, Any] = {}
    try:
        exec(compile(source, "<bundle>", "exec", dont_inherit=True), namespace)  # noqa: S102 - the author's own definitions, which have run already
    except NameError as exc:
        raise BundleError(
            f"the carried definitions do not load by themselves: {exc}; does a module import one that imports it?"
        ) from exc
    for binding in bindings:
        loaded, built = vars(sys.modules[binding.module])[binding.name], namespace[binding.name]
        if not is_equal(loaded, built):
            raise BundleError(
                f"{binding.place}: {binding.name!r} is {shown(loaded)}, but its definition alone gives {shown(built)}; "
                "code that changes it later is not carried: define it in one statement"
            )


def is_equal(loaded: object, built: object, seen: frozenset[tuple[int, int]] = frozenset()) -> bool:
    """Tell whether two values made from the same text have equal plain data, attributes included;
    any other part is compared by its type's name.
    """
    pair = (id(loaded), id(built))
    if pair in seen:  # data that contains itself
        return True
    if type(loaded).__name__ != type(built).__name__:
        return False
    inner = seen | {pair}
    match loaded, built:
        case (str() | bytes() | int() | float() | complex() | None, _):
            return repr(loaded) == repr(built)
        case (set() | frozenset(), set() | frozenset()):
            return len(loaded) == len(built) and _plain(loaded) == _plain(built)
        case (dict(), dict()):
            return is_equal([*loaded.items()], [*built.items()], inner)
        case (list() | tuple(), list() | tuple()):
            return len(loaded) == len(built) and all(
                is_equal(a, b, inner) for a, b in zip(loaded, built, strict=True)
            )
        case _:
            pass
    return is_equal(_attributes(loaded), _attributes(built), inner)


def _plain(values: Iterable[object]) -> set[object]:
    return {value for value in values if isinstance(value, str | bytes | int)}


def _attributes(value: object) -> list[tuple[str, object]]:
    """Return the attributes of an object, a class or a function, without private ones."""
    if isinstance(value, ModuleType):
        return []
    if is_dataclass(value) and not isinstance(value, type):
        return [(part.name, getattr(value, part.name)) for part in fields(value)]
    return [
        (name, item)
        for name, item in getattr(value, "__dict__", {}).items()
        if not name.startswith("_")
    ]
