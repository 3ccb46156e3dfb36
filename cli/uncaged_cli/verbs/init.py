"""`init` writes a flow definition that runs, with its test."""

from __future__ import annotations

from pathlib import Path

import click

from .. import jsonout
from ..arguments import json_option
from ..screen import next_step, result


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Write a runnable flow definition and its test into DIRECTORY."""
    from uncaged_templates.starter import write_starter

    files = [str(path) for path in write_starter(directory)]
    if as_json:
        jsonout.document({"directory": str(directory), "files": files})
        return
    for path in files:
        result(path)
    definition = next((path for path in files if path.endswith(".py") and not Path(path).name.startswith("test_")), str(directory))
    next_step(f"python -m pytest {directory}")
    next_step(f"uncaged-workflow add {Path(definition).stem.replace('_', '-')} {definition}")
