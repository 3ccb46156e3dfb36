"""Values at paths of JSON data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["values_at"]


def values_at(value: object, path: str) -> Iterator[Any]:
    """Yield every value at *path*: dots go down, a number counts in a list, ``*`` is each item."""
    key, _, rest = path.partition(".")
    if isinstance(value, Mapping) and path in value:  # a key with dots in it
        yield value[path]
        return
    if isinstance(value, Mapping):
        inner = list(value.values()) if key == "*" else [value[key]] if key in value else []
    elif isinstance(value, list):
        inner = value if key == "*" else value[int(key) : int(key) + 1] if key.isdecimal() else []
    else:
        inner = []
    for item in inner:
        if rest:
            yield from values_at(item, rest)
        else:
            yield item
