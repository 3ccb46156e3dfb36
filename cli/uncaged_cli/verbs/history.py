"""The verb `history`: lists the versions of a flow, newest first."""

from __future__ import annotations

import sys

import click

from ..display import json_output
from ..display.durations import clock_time
from ..display.output import Piece, Styled, table, text_width
from ..display.table import render
from ..inputs.options import flow_argument, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@flow_argument
@shared_option
@json_option
def command(flow: str, as_json: bool) -> None:
    """List the versions of FLOW, the current one first."""
    entry = open_engine().registry.entry(flow)
    versions = [
        (entry.hash, entry.timestamp_ms),
        *((version.hash, version.timestamp_ms) for version in entry.history),
    ]
    if as_json:
        json_output.document(
            {
                "flow": entry.name,
                "versions": [{"hash": hash_, "sinceMs": when} for hash_, when in versions],
            }
        )
        return
    rows: list[list[Piece]] = [
        [hash_, clock_time(when), Styled("head", "green") if index == 0 else ""]
        for index, (hash_, when) in enumerate(versions)
    ]
    table(render(("hash", "since", ""), rows, width=text_width(sys.stdout)))
