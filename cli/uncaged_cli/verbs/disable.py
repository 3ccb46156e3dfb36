"""`disable` keeps a flow from starting new threads; those that run go on."""

from __future__ import annotations

import click

from .. import jsonout
from ..arguments import flow_argument, json_option
from ..screen import result
from ..session import open_engine
from ..versions import entry_of


@click.command()
@flow_argument
@json_option
def command(flow: str, as_json: bool) -> None:
    """Keep the flow from starting new threads; those that run go on."""
    registry = open_engine().registry
    name = entry_of(registry, flow).name
    registry.set_enabled(name, False)
    if as_json:
        jsonout.document({"name": name, "enabled": False})
        return
    result(f"{name} is disabled")
