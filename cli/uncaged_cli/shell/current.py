"""Command lines with the shell's conversation, which need not be the current one of the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..main import group

if TYPE_CHECKING:
    from .line_host import LineHost

NAME = "conversation"
"""The parameter of verbs that act on a conversation."""


def in_conversation(words: Sequence[str], host: LineHost) -> list[str]:
    """Return a command line that acts on the shell's conversation if it names none."""
    path, command = _command_of(words)
    if command is None or isinstance(command, click.Group):
        return [*words]
    arguments = [*words[len(path) :]]
    try:
        params = command.make_context(path[-1], [*arguments], resilient_parsing=True).params
    except click.ClickException:  # the verb reports it
        return [*words]
    parameter = next((one for one in command.params if one.name == NAME), None)
    if params.get(NAME) is None and parameter is not None and not parameter.required:
        id = host.conversation_id()
        is_option = isinstance(parameter, click.Option)
        return [*path, *([f"--{NAME}", id] if is_option else [id]), *arguments]
    if path == [NAME, "rename"] and len(params["names"]) == 1:
        return [*path, host.conversation_id(), *arguments]
    return [*words]


def _command_of(words: Sequence[str]) -> tuple[list[str], click.Command | None]:
    """Return the words that name a command, subcommands included, and the command."""
    context = click.Context(group)
    path: list[str] = []
    command: click.Command | None = group
    for word in words:
        if not isinstance(command, click.Group):
            break
        inner = command.get_command(context, word)
        if inner is None:
            break
        path.append(word)
        command = inner
    return path, command if path else None
