"""The verb `schedules`: lists the schedules of flows."""

from __future__ import annotations

import sys

import click

from ..display import json_output
from ..display.output import PROGRAM, Styled, next_step, note, table, text_width
from ..display.table import render
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_engine


@click.command()
@shared_option
@json_option
def command(as_json: bool) -> None:
    """List the schedules of flows with their next due times."""
    from uncaged_schedules.changes import list_schedules

    from ..display.schedule_list import HEADERS, schedule_document, schedule_row

    found, now = list_schedules(open_engine()), now_ms()
    if as_json:
        schedules = [schedule_document(one, now) for one in found.schedules]
        json_output.document({"schedules": schedules, "problems": list(found.problems)})
        return
    for problem in found.problems:
        note(Styled("warning: ", "yellow"), problem)
    if not found.schedules:
        note("no schedules")
        next_step(f"{PROGRAM} schedule add FLOW '0 7 * * *'")
        return
    rows = [schedule_row(one, now) for one in found.schedules]
    table(render(HEADERS, rows, width=text_width(sys.stdout)))
