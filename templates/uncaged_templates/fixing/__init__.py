"""Flow `fix-flow`: a changed version of a failed flow, proved and proposed."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["flows"]

HEAD = "# The flow {name!r}, as uncaged-workflow built it."
RUN = "def run(input, options):\n    return (yield from drive_fix(input))\n"


def flows() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bundle of the flow."""
    from uncaged_bundles.builders.text.layout import write_driven

    from . import drive
    from .descriptor import FIX

    name = str(FIX["name"])
    yield name, write_driven(HEAD.format(name=name), FIX, drive.__name__, ["drive_fix"], RUN)
