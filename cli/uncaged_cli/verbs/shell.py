"""The verb `shell`: a conversation at a prompt, or of the lines of a pipe."""

from __future__ import annotations

import os
import sys

import click

from ..display.output import is_terminal
from ..inputs.completion import complete_conversations
from ..inputs.options import json_option, verbose_option
from ..inputs.stores import inherited, shared_option
from ..runtime import now_ms, open_engine
from ..shell.line_mode import LineMode, RequestOptions
from ..shell.scripts import run_lines


@click.command()
@click.option(
    "--conversation",
    metavar="NAME",
    shell_complete=complete_conversations,
    help="The conversation to use instead of the current one.",
)
@click.option("--yes", is_flag=True, help="Run what was understood without asking.")
@click.option("--no-model", is_flag=True, help="Do not ask a model what a sentence means.")
@verbose_option
@shared_option
@json_option
def command(
    *, conversation: str | None, yes: bool, no_model: bool, verbose: bool, as_json: bool
) -> int:
    """Read sentences and @ verbs, one on each line, and run them in one conversation.

    On a terminal, the prompt stays usable while a request runs; further sentences are queued.
    Ctrl-C cancels the request that runs, and Ctrl-D leaves the shell.

    From a pipe, and with --json, lines are run one after the other, each to its end. The exit code
    is that of the first that failed.
    """
    options = RequestOptions(agreed=yes, model=not no_model, as_json=as_json, verbose=verbose)
    with inherited():
        if not as_json and is_terminal(sys.stdin) and is_terminal(sys.stdout):
            return interactive(conversation, options)
        return run_pipe(LineMode(options, conversation=conversation, is_shell=True))


def interactive(conversation: str | None, options: RequestOptions) -> int:
    """Run the shell on a terminal."""
    from uncaged_dispatcher.conversations.catalog import chosen_conversation

    from ..shell.prompt import InteractiveShell

    engine = open_engine()
    engine.read_sentences()
    id = chosen_conversation(engine.store, conversation, now_ms())
    return InteractiveShell(engine, id, options).run()


def run_pipe(lines: LineMode) -> int:
    """Run the lines of standard input."""
    if is_terminal(sys.stdin):
        return run_lines(sys.stdin.buffer, lines)
    with os.fdopen(os.dup(sys.stdin.fileno()), "rb") as stream, open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
        # a verb that reads standard input would take the next lines
        os.dup2(nothing.fileno(), sys.stdin.fileno())
        return run_lines(stream, lines)
