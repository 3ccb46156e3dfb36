"""`rollback` points a flow at a version that it had before."""

from __future__ import annotations

import click

from ..display import json_output
from ..display.output import result
from ..inputs.completion import complete_former
from ..inputs.options import flow_argument, json_option
from ..inputs.versions import entry_of, former_hash
from ..runtime import open_engine


@click.command()
@flow_argument
@click.argument("version", required=False, metavar="[HASH]", shell_complete=complete_former)
@json_option
def command(flow: str, version: str | None, as_json: bool) -> None:
    """Point the flow at the version before, or at the former version HASH (a unique beginning will
    do).
    """
    registry = open_engine().registry
    entry = entry_of(registry, flow)
    after = registry.rollback(entry.name, former_hash(entry, version) if version else None)
    if as_json:
        json_output.document({"flow": after.name, "hash": after.hash, "before": entry.hash})
        return
    result(f"{after.name} is {after.hash} now (was {entry.hash})")
