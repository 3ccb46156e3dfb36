"""`list` shows every flow of the registry, and names each entry that is damaged without hiding the others."""

from __future__ import annotations

import sys

import click

from .. import jsonout
from ..arguments import json_option
from ..durations import ago
from ..screen import Piece, Styled, next_step, note, result, width_of
from ..session import now_ms, open_engine
from ..table import render

HEADERS = ("flow", "hash", "versions", "since", "")


@click.command()
@json_option
def command(as_json: bool) -> None:
    """List the flows of the registry."""
    snapshot = open_engine().registry.read()
    flows = sorted(snapshot.flows.values(), key=lambda flow: flow.name)
    if as_json:
        jsonout.document(
            {
                "flows": [
                    {
                        "name": flow.name,
                        "hash": flow.hash,
                        "timestamp": flow.timestamp_ms,
                        "enabled": flow.enabled,
                        "source": flow.source,
                        "versions": 1 + len(flow.history),
                    }
                    for flow in flows
                ],
                "problems": list(snapshot.problems),
            }
        )
        return
    for problem in snapshot.problems:
        note(Styled("warning: ", "yellow"), problem)
    if not flows:
        note("no flows yet")
        next_step("uncaged-workflow init my-flow")
        return
    now = now_ms()
    rows: list[list[Piece]] = [
        [
            flow.name,
            flow.hash,
            str(1 + len(flow.history)),
            ago(flow.timestamp_ms, now),
            "" if flow.enabled else Styled("disabled", "yellow"),
        ]
        for flow in flows
    ]
    for line in render(HEADERS, rows, width=width_of(sys.stdout)):
        result(*line)
