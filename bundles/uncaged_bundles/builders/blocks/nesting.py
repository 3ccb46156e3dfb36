"""Which blocks hold others, and under which keys, is said here once for all who walk through a
flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

INNER: Mapping[str, tuple[str, ...]] = {"condition": ("then", "else"), "forEach": ("steps",)}
"""The keys with blocks, by the type of the block that holds them; under the same key of another
block stands what its author likes.
"""


def every_block(steps: list[Any], before: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (number, type, config) of all blocks, those inside others included."""
    for index, step in enumerate(steps, 1):
        number, config = f"{before}{index}", step["config"]
        yield number, step["type"], config
        for key in INNER.get(step["type"], ()):
            yield from every_block(config.get(key, []), f"{number}.")
