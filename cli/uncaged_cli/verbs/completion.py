"""The verb `completion`: prints the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.output import PROGRAM
from ..inputs.options import json_option

VARIABLE = "_UNCAGED_WORKFLOW_COMPLETE"
HINTS = {
    "bash": f'eval "$({PROGRAM} completion bash)"   in ~/.bashrc',
    "zsh": f'eval "$({PROGRAM} completion zsh)"   in ~/.zshrc',
    "fish": f"{PROGRAM} completion fish > ~/.config/fish/completions/{PROGRAM}.fish",
}


@click.command(epilog="\b\n" + "\n".join(HINTS.values()))
@click.argument("shell", type=click.Choice(tuple(HINTS)))
@json_option
@click.pass_context
def command(context: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script for SHELL."""
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"click has no completion for {shell!r}")
    script = kind(context.find_root().command, {}, PROGRAM, VARIABLE)
    source = script.source_template % script.source_vars()
    if as_json:
        json_output.document({"shell": shell, "script": source})
    else:
        click.echo(source)
