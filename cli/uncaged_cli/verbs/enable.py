"""The verb `enable`: lets a disabled flow start threads again."""

from __future__ import annotations

import click

from ..display import json_output
from ..display.output import result
from ..inputs.options import flow_argument, json_option
from ..inputs.versions import entry_of
from ..runtime import open_engine


@click.command()
@flow_argument
@json_option
def command(flow: str, as_json: bool) -> None:
    """Enable a disabled FLOW, so that it can start threads again."""
    registry = open_engine().registry
    name = entry_of(registry, flow).name
    registry.set_enabled(name, True)
    if as_json:
        json_output.document({"flow": name, "enabled": True})
        return
    result(f"{name} is enabled")
