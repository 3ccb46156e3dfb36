"""Nesting of blocks: which types of block contain others, and a walk over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

INNER: Mapping[str, tuple[str, ...]] = {"condition": ("then", "else"), "forEach": ("steps",)}
"""The keys with blocks, by the type of the block that contains them. Under the same key, a block of
another type may have any value.
"""


def every_block(steps: list[Any], before: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (number, type, config) of all blocks, nested ones included."""
    for index, step in enumerate(steps, 1):
        number, config = f"{before}{index}", step["config"]
        yield number, step["type"], config
        for key in INNER.get(step["type"], ()):
            yield from every_block(config.get(key, []), f"{number}.")
