"""`rollback` points a flow at a version that it had before."""

from __future__ import annotations

import click

from ..display import jsonout
from ..display.screen import result
from ..given.arguments import complete_former, flow_argument, json_option
from ..given.versions import entry_of, former_hash
from ..session import open_engine


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
        jsonout.document({"flow": after.name, "hash": after.hash, "before": entry.hash})
        return
    result(f"{after.name} is {after.hash} now (was {entry.hash})")
