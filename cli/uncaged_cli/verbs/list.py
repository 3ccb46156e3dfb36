"""The verb `list`: lists the flows of the registry. A damaged entry is reported and hides no
other.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage.snapshot import Flow

from ..display import json_output
from ..display.durations import ago
from ..display.output import Piece, Styled, next_step, note, table, text_width
from ..display.table import render
from ..flow_usage import FlowUsage, count_usage, flow_note, spell_usage, usage_of
from ..inputs.options import full_option, json_option
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_engine

USED = "used"
HEADERS = ("flow", "hash", "versions", "since", "source", USED, "")


@click.command()
@full_option
@shared_option
@json_option
def command(full: bool, as_json: bool) -> None:
    """List the flows of the registry."""
    engine = open_engine()
    snapshot = engine.registry.read()
    flows = sorted(snapshot.flows.values(), key=lambda flow: flow.name)
    # the threads of a shared store are too many to be counted
    used = None if engine.is_shared else count_usage(engine.store)
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
                        **_usage_fields(flow, used),
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
            *([] if used is None else [spell_usage(usage_of(flow, used), now)]),
            flow_note(flow),
        ]
        for flow in flows
    ]
    headers = tuple(name for name in HEADERS if used is not None or name != USED)
    table(render(headers, rows, width=text_width(sys.stdout, full=full)))


def _usage_fields(
    flow: Flow, used: Mapping[str | BundleHash, FlowUsage] | None
) -> Mapping[str, int | None]:
    found = None if used is None else usage_of(flow, used)
    return {
        "usageCount": None if found is None else found.count,
        "lastUsedMs": None if found is None else found.last_ms,
    }
