"""The verb `disable`: stops a flow from starting new threads."""

from __future__ import annotations

import click

from ..display import json_output
from ..display.output import result
from ..inputs.options import flow_argument, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@flow_argument
@shared_option
@json_option
def command(flow: str, as_json: bool) -> None:
    """Disable FLOW: it starts no new threads. Running threads continue."""
    registry = open_engine().registry
    name = registry.entry(flow).name
    registry.set_enabled(name, False)
    if as_json:
        json_output.document({"flow": name, "enabled": False})
        return
    result(f"{name} is disabled")
