"""The verb `rollback`: returns a flow to a former version."""

from __future__ import annotations

import click
from uncaged_engine.services.flows import former_hash

from ..display import json_output
from ..display.output import result
from ..inputs.completion import complete_former
from ..inputs.options import flow_argument, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@flow_argument
@click.argument("version", required=False, metavar="[HASH]", shell_complete=complete_former)
@shared_option
@json_option
def command(flow: str, version: str | None, as_json: bool) -> None:
    """Return FLOW to the version before, or to the former version HASH (a unique prefix is
    enough).
    """
    registry = open_engine().registry
    entry = registry.entry(flow)
    after = registry.rollback(entry.name, former_hash(entry, version) if version else None)
    if as_json:
        json_output.document({"flow": after.name, "hash": after.hash, "before": entry.hash})
        return
    result(f"{after.name} is now {after.hash} (was {entry.hash})")
