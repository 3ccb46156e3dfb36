"""Every recipe that lies in ``samples`` is a shipped flow under its own name; one file, one
flow.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SAMPLES = Path(__file__).parent / "samples"
SUFFIX = ".recipe.json"


def flows() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bundle of each sample, built when somebody asks for it."""
    from uncaged_bundles.builders.recipes.recipe import read_recipe
    from uncaged_bundles.builders.recipes.recipe_flow import build_flow

    for path in sorted(SAMPLES.glob(f"*{SUFFIX}")):
        flow = read_recipe(path.read_bytes(), path.name)
        yield flow.name, build_flow(flow).source
