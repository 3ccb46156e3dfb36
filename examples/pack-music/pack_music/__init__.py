"""The pack `music` and its flows, as the entry points of this distribution name them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_HERE = Path(__file__).parent

PACK = _HERE / "music.yaml"


def flows() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bundle of each flow."""
    for path in sorted((_HERE / "flows").glob("*.py")):
        yield path.stem, path.read_bytes()
