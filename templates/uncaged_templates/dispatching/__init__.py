"""Flows of the dispatcher: `interpret` asks a model for calls, `calls` runs several in order."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["flows"]

HEAD = "# The flow {name!r}, as uncaged-workflow built it."
RUN = "def run(input, options):\n    return (yield from {driver}(input))\n"


def flows() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bundle of each flow."""
    from uncaged_bundles.builders.text.layout import write_driven

    from . import calls, interpret

    for module, driver in ((calls, "drive_calls"), (interpret, "drive_interpret")):
        name = str(module.DESCRIPTOR["name"])
        yield (
            name,
            write_driven(
                HEAD.format(name=name),
                module.DESCRIPTOR,
                module.__name__,
                [driver],
                RUN.format(driver=driver),
            ),
        )
