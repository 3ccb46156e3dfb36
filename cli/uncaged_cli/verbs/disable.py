"""`disable` keeps a flow from starting new threads; those that run go on."""

from __future__ import annotations

import click

from ..display import jsonout
from ..display.screen import result
from ..given.arguments import flow_argument, json_option
from ..given.versions import entry_of
from ..session import open_engine


@click.command()
@flow_argument
@json_option
def command(flow: str, as_json: bool) -> None:
    """Keep the flow from starting new threads; those that run go on."""
    registry = open_engine().registry
    name = entry_of(registry, flow).name
    registry.set_enabled(name, False)
    if as_json:
        jsonout.document({"flow": name, "enabled": False})
        return
    result(f"{name} is disabled")
