"""`init` writes a flow definition that runs, with its test."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ..display import jsonout
from ..display.screen import next_step, result
from ..given.arguments import json_option, new_directory_argument


@click.command()
@new_directory_argument
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Write a runnable flow definition and its test into DIRECTORY."""
    from uncaged_templates.starter import write_starter

    files = write_starter(directory)
    if as_json:
        jsonout.document({"directory": str(directory), "files": [str(path) for path in files]})
        return
    for path in files:
        result(str(path))
    next_step(f"cd {shlex.quote(str(directory))}")
    next_step("python -m pytest")
    definition = next(path.name for path in files if path.suffix == ".py" and not path.name.startswith("test_"))
    flow = definition.removesuffix(".py").replace("_", "-")
    next_step(f"uncaged-workflow add {flow} {definition}")
    for script in (path.name for path in files if path.suffix == ".yaml"):
        next_step(f'uncaged-workflow run {flow} --agent scripted:{script} --prompt "Invite the team to lunch"')
