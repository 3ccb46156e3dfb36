"""The verb `remove`: removes a flow from the registry. Its bundles and threads stay."""

from __future__ import annotations

import click

from ..display import json_output
from ..display.output import next_step, result
from ..inputs.options import flow_argument, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@flow_argument
@shared_option
@json_option
def command(flow: str, as_json: bool) -> None:
    """Remove FLOW from the registry; its bundles and threads stay."""
    registry = open_engine().registry
    entry = registry.entry(flow)
    registry.remove(entry.name)
    if as_json:
        json_output.document({"flow": entry.name, "hash": entry.hash, "removed": True})
        return
    result(f"removed {entry.name}; its bundle {entry.hash} and its threads are kept")
    next_step(f"uncaged-workflow threads {entry.name}")
