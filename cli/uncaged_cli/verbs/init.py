"""The verb `init`: writes an example flow definition with its test."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import click

from ..display import json_output
from ..display.output import next_step, result
from ..inputs.options import json_option, new_directory_argument


@click.command()
@new_directory_argument
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Write an example flow definition and its test into DIRECTORY."""
    from uncaged_templates.starter import write_starter

    files = write_starter(directory)
    if as_json:
        json_output.document({"directory": str(directory), "files": [str(path) for path in files]})
        return
    for path in files:
        result(str(path))
    next_step(f"{_python()} -m pytest {_quoted(directory)}")
    definition = next(
        path.name for path in files if path.suffix == ".py" and not path.name.startswith("test_")
    )
    flow = definition.removesuffix(".py").replace("_", "-")
    next_step(f"uncaged-workflow add {flow} {_quoted(directory / definition)}")
    for script in (path.name for path in files if path.suffix == ".yaml"):
        next_step(
            f'uncaged-workflow run {flow} --agent scripted:{_quoted(directory / script)} --prompt "Invite the team to lunch"'
        )


def _python() -> str:
    """Return the command that starts the Python of this process."""
    found = shutil.which("python")
    return (
        "python"
        if found and Path(found).parent == Path(sys.executable).parent
        else _quoted(Path(sys.executable))
    )


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
