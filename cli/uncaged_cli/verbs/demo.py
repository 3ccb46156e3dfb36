"""The verb `demo`: writes a small git repository with failing tests."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ..display import json_output
from ..display.output import next_step, result
from ..inputs.options import json_option, new_directory_argument


@click.command()
@new_directory_argument
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Write a small git repository with bugs and failing tests into DIRECTORY."""
    from uncaged_templates.demo import write_demo

    write_demo(directory)
    if as_json:
        json_output.document({"directory": str(directory)})
        return
    result(f"{directory}: a git repository with failing tests")
    place, issue = shlex.quote(str(directory)), shlex.quote(str(directory / "ISSUE.md"))
    next_step(f"uncaged-workflow run solve-issue --workspace {place} --prompt - < {issue}")
