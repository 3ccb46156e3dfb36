"""The verb `proposals`: lists proposed versions of flows."""

from __future__ import annotations

import sys

import click

from ..display import json_output
from ..display.durations import clock_time
from ..display.output import Piece, Styled, next_step, note, result, table, text_width
from ..display.table import render, unique_prefixes
from ..inputs.completion import complete_flows
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

SHORTEST_PREFIX = 10
COLOURS = {"open": "yellow", "accepted": "green"}


@click.command()
@click.option(
    "--flow", metavar="NAME", shell_complete=complete_flows, help="Only those for this flow."
)
@click.option("--all", "all_states", is_flag=True, help="Also those that are decided or stale.")
@shared_option
@json_option
def command(*, flow: str | None, all_states: bool, as_json: bool) -> None:
    """List the proposed versions of flows, the newest first. None is active until accepted."""
    kept = open_engine().proposals.found()
    found = [
        one
        for one in kept.proposals
        if flow in (None, one.flow) and (all_states or one.state == "open")
    ]
    if as_json:
        json_output.document(
            {"proposals": [one.document() for one in found], "problems": list(kept.problems)}
        )
        return
    for problem in kept.problems:
        note(Styled("warning: ", "yellow"), problem)
    if not found:
        result("no version is proposed")
        return
    prefixes = unique_prefixes([one.id for one in kept.proposals], minimum=SHORTEST_PREFIX)
    rows: list[list[Piece]] = [
        [
            prefixes[one.id],
            Styled(one.state, COLOURS.get(one.state, "bright_black")),
            clock_time(one.created_ms),
            Styled(one.flow, "cyan"),
            f"{one.before} → {one.after}",
            f"{one.by}{', asks for more' if one.policy else ''}",
        ]
        for one in found
    ]
    headers = ("id", "state", "since", "flow", "versions", "by")
    table(render(headers, rows, width=text_width(sys.stdout)))
    if found[0].state == "open":
        next_step(f"uncaged-workflow proposal show {prefixes[found[0].id]}")
