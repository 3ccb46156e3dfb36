"""`rollback` points a flow at a version that it had before."""

from __future__ import annotations

import click

from .. import jsonout
from ..arguments import flow_argument, json_option
from ..screen import result
from ..session import open_engine
from ..versions import entry_of, former_hash


@click.command()
@flow_argument
@click.argument("version", required=False, metavar="[HASH]")
@json_option
def command(flow: str, version: str | None, as_json: bool) -> None:
    """Point the flow at the version before, or at the former version HASH (a unique beginning will do)."""
    registry = open_engine().registry
    entry = entry_of(registry, flow)
    after = registry.rollback(entry.name, former_hash(entry, version) if version else None)
    if as_json:
        jsonout.document({"name": after.name, "hash": after.hash, "before": entry.hash})
        return
    result(f"{after.name} is {after.hash} now (was {entry.hash})")
