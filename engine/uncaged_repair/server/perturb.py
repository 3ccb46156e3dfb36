"""Perturbed arguments of a recorded call: small changes of plain values, in an order that depends
on nothing but the values.
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

MAX_VARIANTS = 24
MAX_ATTRIBUTES = 6
MAX_NODES = 2000
MAX_DEPTH = 6
SCALARS = (int, float, complex, bool, type(None), str, bytes)


class Variant:
    """Change of a call's arguments. values: argument to its new value. attributes: (argument,
    attribute, new value) of objects.
    """

    def __init__(
        self, values: dict[str, Any], attributes: list[tuple[str, str, Any]] | None = None
    ) -> None:
        self.values, self.attributes = values, attributes or []

    def apply(self, arguments: dict[str, Any]) -> None:
        """Replace values in *arguments*, which must be a copy for this call alone."""
        for name, value in self.values.items():
            arguments[name] = plain_copy(value)
        for name, attribute, value in self.attributes:
            object.__setattr__(arguments[name], attribute, plain_copy(value))


def variants_of(
    arguments: Mapping[str, Any], optional: frozenset[str], others: Mapping[str, list[Any]]
) -> list[Variant]:
    """Return the unchanged call and its perturbations, at most MAX_VARIANTS.

    optional: arguments that may be None. others: argument to the plain values of earlier calls.
    """
    places: list[Iterator[Variant]] = []
    for name, value in arguments.items():
        if is_plain(value):
            places.append(_of_argument(name, value, name in optional, others.get(name, [])))
        else:
            places.append(_of_attributes(name, value))
    found = [Variant({})]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*places))
    found += itertools.islice((variant for variant in turns if variant is not None), MAX_VARIANTS)
    return found[:MAX_VARIANTS]


def is_plain(value: object, depth: int = 0) -> bool:
    """Return whether *value* consists of plain data only, and is small."""
    left = [MAX_NODES]

    def plain(value: Any, depth: int) -> bool:
        left[0] -= 1
        kind = type(value)
        if left[0] < 0 or depth > MAX_DEPTH:
            return False
        if kind in SCALARS:
            return True
        if kind in (list, tuple, set, frozenset):
            return all(plain(item, depth + 1) for item in value)
        return kind is dict and all(
            plain(key, depth + 1) and plain(held, depth + 1) for key, held in value.items()
        )

    return plain(value, depth)


def plain_copy(value: Any) -> Any:
    """Return a copy of plain data that shares no container with it."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return kind(plain_copy(item) for item in value)
    if kind is dict:
        return {key: plain_copy(held) for key, held in value.items()}
    return value


def _of_argument(
    name: str, value: object, optional: bool, others: list[object]
) -> Iterator[Variant]:
    for changed in changes(value):
        yield Variant({name: changed})
    if optional and value is not None:
        yield Variant({name: None})
    for other in others:
        if type(other) is type(value) and repr(other) != repr(value):
            yield Variant({name: other})


def _of_attributes(name: str, value: object) -> Iterator[Variant]:
    """Yield changes of the plain attributes of an object."""
    try:
        inner = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return
    if type(inner) is not dict:
        return
    chosen = [key for key in sorted(map(str, inner)) if is_plain(inner.get(key))][:MAX_ATTRIBUTES]
    turns = itertools.zip_longest(
        *(
            [Variant({}, [(name, key, changed)]) for changed in changes(inner[key])]
            for key in chosen
        )
    )
    yield from (variant for variant in itertools.chain.from_iterable(turns) if variant is not None)


def changes(value: Any, depth: int = 0) -> list[Any]:
    """Return values near to a plain *value*, none of them equal to it in type and text."""
    if type(value) is bool:
        found: list[Any] = [not value]
    elif type(value) is int:
        found = [value + 1, value - 1, 0, -value, 1, value * 1000 + 7, value + 2]
    elif type(value) is float:
        found = [value + 1, value - 1, 0.0, -value, value / 2, value * 1000]
    elif type(value) is str:
        found = _texts(value, "", " ", str.swapcase)
    elif type(value) is bytes:
        found = _texts(value, b"", b" ", bytes.swapcase)
    elif type(value) in (list, tuple):
        found = _sequences(value, depth)
    elif type(value) is dict:
        found = _mappings(value, depth)
    elif type(value) in (set, frozenset):
        ordered = sorted(value, key=repr)
        found = [type(value)(part) for part in (ordered[1:], ordered[:-1], ordered[:1], ())]
    else:
        found = []
    known = {repr(value)}
    return [new for new in found if not (repr(new) in known or known.add(repr(new)))]  # type: ignore[func-returns-value]


def _texts(value: Any, empty: Any, blank: Any, swap: Callable[[Any], Any]) -> list[Any]:
    """Return changes of a string or of bytes; positions come from a generator seeded by it."""
    chance = random.Random(repr(value))  # noqa: S311 - repeatable, not secret
    found = [value[:-1], value[1:], empty, value + value, value[::-1], swap(value), value[:1]]
    if len(value) > 2:
        for _ in range(3):
            first, second = sorted(chance.sample(range(len(value)), 2))
            found.append(value[:first] + value[first + 1 :])
            found.append(value[:second] + value[first : first + 1] + value[second:])
    return [*found, value + blank, blank + value]


def _sequences(value: Any, depth: int) -> list[Any]:
    kind = type(value)
    found = [
        value[:-1],
        value[1:],
        value[::-1],
        kind(),
        value + value,
        value[:1],
        value + value[:1],
    ]
    if depth < 2:
        for index in dict.fromkeys([0, len(value) - 1] if value else []):
            for changed in changes(value[index], depth + 1)[:4]:
                found.insert(3, kind([*value[:index], changed, *value[index + 1 :]]))
    return found


def _mappings(value: dict[Any, Any], depth: int) -> list[Any]:
    keys = list(value)
    found: list[Any] = [{key: value[key] for key in keys[1:]}]
    found.append({key: value[key] for key in keys[:-1]})
    if depth < 2:
        for key in keys[:3]:
            found += [{**value, key: changed} for changed in changes(value[key], depth + 1)[:3]]
    return [*found, {key: value[key] for key in reversed(keys)}, {}]
