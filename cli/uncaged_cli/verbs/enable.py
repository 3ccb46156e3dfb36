"""The verb `enable`: lets a disabled flow start threads again."""

from __future__ import annotations

import click

from ..display import json_output
from ..display.output import result
from ..inputs.options import flow_argument, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@flow_argument
@click.option(
    "--confirm/--no-confirm",
    default=None,
    help="Set or remove a mark: a sentence runs the flow only after you agreed.",
)
@shared_option
@json_option
def command(*, flow: str, confirm: bool | None, as_json: bool) -> None:
    """Enable a disabled FLOW, so that it can start threads again."""
    registry = open_engine().registry
    name = registry.entry(flow).name
    registry.set_enabled(name, True)
    if confirm is not None:
        registry.set_confirm(name, confirm)
    if as_json:
        found = registry.flow(name)
        marked = found is not None and found.confirm
        json_output.document({"flow": name, "enabled": True, "confirm": marked})
        return
    result(f"{name} is enabled")
    if confirm is not None:
        result(f"a sentence runs {name} {'only after you agreed' if confirm else 'without asking'}")
