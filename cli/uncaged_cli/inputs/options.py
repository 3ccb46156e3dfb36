"""Arguments and options that several verbs share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
from uncaged_bundles.errors import UsageError

from ..display.durations import parse_age
from .completion import (
    complete_agent_settings,
    complete_agents,
    complete_conversations,
    complete_flows,
    complete_threads,
)

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]

ROLE_BINDING = re.compile(r"\s*([a-zA-Z][a-zA-Z0-9_-]*)\s*=(.*)", re.DOTALL)
"""``coder=claude``. ``command:tool --x=y`` does not match: it is an agent for all roles."""


def _parse_seconds(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> float | None:
    return None if value is None else parse_age(value, example="90s") / 1000


def _parse_directory(_context: click.Context, _parameter: click.Parameter, value: str) -> Path:
    """Refuse an empty directory name, which comes from a variable that is not set."""
    if not value:
        raise UsageError(
            "the directory name is empty; name a directory, or `.` for the current one"
        )
    return Path(value)


flow_argument = click.argument("flow", metavar="FLOW", shell_complete=complete_flows)
thread_argument = click.argument("thread", metavar="THREAD", shell_complete=complete_threads)
new_directory_argument = click.argument("directory", type=click.Path(), callback=_parse_directory)
threads_argument = click.argument(
    "threads", metavar="THREAD...", nargs=-1, required=True, shell_complete=complete_threads
)
conversation_option = click.option(
    "--conversation",
    "conversation",
    metavar="NAME",
    shell_complete=complete_conversations,
    help="The conversation to use instead of the current one.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
verbose_option = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show the details of each step; in a pipe, also its progress.",
)
full_option = click.option("--full", is_flag=True, help="Do not shorten long texts.")
detach_option = click.option(
    "--detach", is_flag=True, help="Print the thread id and return without following the thread."
)
accept_option = click.option(
    "--accept", is_flag=True, help="Grant what the policy asks for, without asking."
)
screenshots_option = click.option(
    "--screenshots",
    is_flag=True,
    help="Keep a picture of the page after each step that acts in a browser; `thread show --html` shows them.",
)
max_rounds_option = click.option(
    "--max-rounds",
    type=click.IntRange(min=0),
    metavar="N",
    help="Limit of role steps (default of a new thread: 10).",
)
max_steps_option = click.option(
    "--max-steps",
    type=click.IntRange(min=0),
    metavar="N",
    help="Limit of all steps (default of a new thread: 10,000).",
)
max_cost_option = click.option(
    "--max-cost", type=click.FloatRange(min=0), metavar="USD", help="Cost limit in US dollars."
)
max_tokens_option = click.option(
    "--max-tokens",
    type=click.IntRange(min=0),
    metavar="N",
    help="Limit of input and output tokens.",
)
max_time_option = click.option(
    "--max-time",
    "max_seconds",
    metavar="TIME",
    callback=_parse_seconds,
    help="Limit of running time, such as 90s, 30m or 2h.",
)
max_journal_option = click.option(
    "--max-journal",
    "max_journal_bytes",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Size limit of the journal with its blobs (default: 1 GiB).",
)
bundle_time_option = click.option(
    "--bundle-time",
    "bundle_seconds",
    metavar="TIME",
    callback=_parse_seconds,
    help="Time limit of the bundle between two effects (default: 10s).",
)
agent_option = click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="[ROLE=]NAME",
    shell_complete=complete_agents,
    help="The agent of all roles, or of one role. May be repeated.",
)
agent_settings_option = click.option(
    "--agent-option",
    "agent_settings",
    multiple=True,
    metavar="[ROLE.]KEY=VALUE",
    shell_complete=complete_agent_settings,
    help="A setting of the agent of all roles, or of one role, for this thread. May be repeated.",
)


WORKSPACE_OPTIONS = (
    click.option(
        "--workspace",
        type=click.Path(path_type=Path),
        callback=lambda _context, _parameter, value: value and value.absolute(),
        metavar="DIR",
        help="The repository to work on (default: the current directory).",
    ),
    click.option(
        "--include-changes",
        is_flag=True,
        help="Start from the uncommitted changes instead of refusing them.",
    ),
    click.option(
        "--link",
        "links",
        multiple=True,
        metavar="NAME",
        help="A directory that git ignores, to link into the worktree. May be repeated.",
    ),
    click.option(
        "--test-command", metavar="CMD", help="The command that runs the repository's tests."
    ),
)


PARAMETER_OPTIONS = (
    click.option(
        "--param",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="A parameter. May be repeated.",
    ),
    click.option(
        "--params",
        "params_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Read parameters from a JSON or YAML file.",
    ),
)


def parameter_options(command: Decorated) -> Decorated:
    """Add the options for a flow's parameters, whose values `parameters.gather` reads."""
    for option in reversed(PARAMETER_OPTIONS):
        command = option(command)
    return command


def workspace_options(command: Decorated) -> Decorated:
    """Add the workspace options, under the keyword names of RunOptions."""
    for option in reversed(WORKSPACE_OPTIONS):
        command = option(command)
    return command


def limit_options(command: Decorated) -> Decorated:
    """Add the limit options, under the keyword names of RunOptions."""
    for option in (
        bundle_time_option,
        max_journal_option,
        max_time_option,
        max_tokens_option,
        max_cost_option,
        max_steps_option,
        max_rounds_option,
    ):
        command = option(command)
    return command


def parse_agent_settings(values: Iterable[str]) -> dict[str, dict[str, object]]:
    """Return the settings of each role's agent; those for all roles are under the empty role."""
    settings: dict[str, dict[str, object]] = {}
    for value in values:
        name, equals, text = value.partition("=")
        role, _, key = name.strip().rpartition(".")
        if not equals or not key or "." in role or name.strip().startswith("."):
            raise UsageError(f"--agent-option {value!r} is neither KEY=VALUE nor ROLE.KEY=VALUE")
        known = settings.setdefault(role, {})
        if key in known:
            raise UsageError(f"--agent-option gives {name.strip()!r} twice")
        known[key] = parse_setting(text)
    return settings


def parse_setting(text: str) -> object:
    """Return the value of a setting: JSON such as ``60`` or ``["a", "b"]``, else the text."""
    try:
        return json.loads(text, parse_constant=lambda _: text)
    except (ValueError, RecursionError):
        return text


def parse_agents(values: Iterable[str]) -> dict[str, str]:
    """Return the agent of each role; the default agent is under the empty role."""
    agents: dict[str, str] = {}
    for value in values:
        match = ROLE_BINDING.fullmatch(value)
        role, name = (match[1], match[2].strip()) if match else ("", value.strip())
        if not name or name.startswith("="):
            raise UsageError(f"--agent {value!r} is neither NAME nor ROLE=NAME")
        if role in agents:
            raise UsageError(
                f"--agent names {f'role {role!r}' if role else 'the default agent'} twice: {agents[role]!r} and {name!r}"
            )
        agents[role] = name
    return agents
