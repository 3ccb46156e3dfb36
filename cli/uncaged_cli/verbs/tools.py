"""The verb `tools`: lists the enabled flows as tools for models."""

from __future__ import annotations

import sys

import click

from ..display import json_output
from ..display.output import Piece, Styled, next_step, note, table, text_width
from ..display.table import render
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

HEADERS = ("tool", "arguments", "")


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["anthropic", "openai", "mcp"]),
    help="Print JSON in the format of this endpoint or client.",
)
@shared_option
@json_option
def command(form: str | None, as_json: bool) -> None:
    """List the enabled flows as tools, with the description that a model gets."""
    from uncaged_tools.flows import FORMATS, tool_document, tools

    found = tools(open_engine())
    if form is not None:
        chosen = next(one for one in FORMATS if one == form)
        json_output.document([tool_document(tool, chosen) for tool in found])
    elif as_json:
        fields = [{"name": tool.name, "flow": tool.flow, "hash": tool.hash} for tool in found]
        json_output.document(
            [
                {**one, "description": tool.description, "schema": tool.schema}
                for one, tool in zip(fields, found, strict=True)
            ]
        )
    elif not found:
        note("no flow is enabled, so there are no tools")
        next_step("uncaged-workflow list")
    else:
        rows: list[list[Piece]] = [
            [Styled(tool.name, "cyan"), ", ".join(tool.schema["properties"]), tool.description]
            for tool in found
        ]
        table(render(HEADERS, rows, width=text_width(sys.stdout)))
