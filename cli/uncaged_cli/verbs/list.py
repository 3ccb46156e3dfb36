"""The verb `list`: lists the flows of the registry. A damaged entry is reported and hides no
other.
"""

from __future__ import annotations

import sys

import click

from ..display import json_output
from ..display.durations import ago
from ..display.output import Piece, Styled, next_step, note, table, text_width
from ..display.table import render
from ..flow_usage import count_usage, flow_note, spell_usage, usage_of
from ..inputs.options import full_option, json_option
from ..runtime import now_ms, open_engine

HEADERS = ("flow", "hash", "versions", "since", "source", "used", "")


@click.command()
@full_option
@json_option
def command(full: bool, as_json: bool) -> None:
    """List the flows of the registry."""
    engine = open_engine()
    snapshot = engine.registry.read()
    flows = sorted(snapshot.flows.values(), key=lambda flow: flow.name)
    used = count_usage(engine.store)
    if as_json:
        json_output.document(
            {
                "flows": [
                    {
                        "flow": flow.name,
                        "hash": flow.hash,
                        "sinceMs": flow.timestamp_ms,
                        "enabled": flow.enabled,
                        "createdMs": flow.created_ms,
                        "source": flow.source,
                        "unsupported": flow.unsupported,
                        "usageCount": (use := usage_of(flow, used)).count,
                        "lastUsedMs": use.last_ms,
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
            flow.source,
            spell_usage(usage_of(flow, used), now),
            flow_note(flow),
        ]
        for flow in flows
    ]
    table(render(HEADERS, rows, width=text_width(sys.stdout, full=full)))
