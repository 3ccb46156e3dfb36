"""Shipped flows from the recipes in ``samples``: one file, one flow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"
SUFFIX = ".recipe.json"
CONFIRMED = frozenset(
    {
        "compress-files",
        "copy-file",
        "delete-file",
        "extract-archive",
        "make-folder",
        "move-file",
        "remove-note",
        "rename-file",
    }
)
"""Flows that change files of the person: a sentence runs them only with consent."""


def flows() -> Iterator[tuple[str, bytes, bool]]:
    """Yield the name and the bundle of each sample, not yet validated, and whether it needs
    consent; each is built when it is reached.
    """
    from uncaged_bundles.builders.recipes.recipe import read_recipe
    from uncaged_bundles.builders.recipes.recipe_flow import write_flow

    for path in sorted(SAMPLES.glob(f"*{SUFFIX}")):
        flow = read_recipe(path.read_bytes(), path.name)
        yield flow.name, write_flow(flow), flow.name in CONFIRMED
