"""Arguments and options that several verbs take are declared once, with their completion;
completing imports nothing heavy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
from uncaged_bundles.errors import UsageError

from ..display.durations import parse_age
from .completion import complete_agents, complete_flows, complete_threads

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]

ROLE_BINDING = re.compile(r"\s*([a-zA-Z][a-zA-Z0-9_-]*)\s*=(.*)", re.DOTALL)
"""``coder=claude``; but ``command:tool --x=y`` is an agent for all roles."""


def _seconds(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> float | None:
    return None if value is None else parse_age(value, example="90s") / 1000


def _named(_context: click.Context, _parameter: click.Parameter, value: str) -> Path:
    """An empty word is a slip, such as a variable that is not set; nobody means the current
    directory by it.
    """
    if not value:
        raise UsageError("the directory's name is empty; name a directory, or `.` for this one")
    return Path(value)


flow_argument = click.argument("flow", metavar="FLOW", shell_complete=complete_flows)
thread_argument = click.argument("thread", metavar="THREAD", shell_complete=complete_threads)
new_directory_argument = click.argument("directory", type=click.Path(), callback=_named)
threads_argument = click.argument(
    "threads", metavar="THREAD...", nargs=-1, required=True, shell_complete=complete_threads
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
verbose_option = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Unfold each step as it ends; in a pipe, say what it does before.",
)
full_option = click.option("--full", is_flag=True, help="Show long texts whole.")
detach_option = click.option(
    "--detach", is_flag=True, help="Return once the thread is accepted, and print its id alone."
)
accept_option = click.option(
    "--accept", is_flag=True, help="Grant what the policy asks for, without a question."
)
max_rounds_option = click.option(
    "--max-rounds",
    type=click.IntRange(min=0),
    metavar="N",
    help="Limit of role steps (a new thread has 10).",
)
max_steps_option = click.option(
    "--max-steps",
    type=click.IntRange(min=0),
    metavar="N",
    help="Limit of all steps (a new thread has 10,000).",
)
max_cost_option = click.option(
    "--max-cost", type=click.FloatRange(min=0), metavar="USD", help="Limit of money, in US dollars."
)
max_tokens_option = click.option(
    "--max-tokens", type=click.IntRange(min=0), metavar="N", help="Limit of tokens, in and out."
)
max_time_option = click.option(
    "--max-time",
    "max_seconds",
    metavar="TIME",
    callback=_seconds,
    help="Limit of running time, as in 90s, 30m or 2h.",
)
max_journal_option = click.option(
    "--max-journal",
    "max_journal_bytes",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Limit of the journal and its blobs (1 GiB).",
)
bundle_time_option = click.option(
    "--bundle-time",
    "bundle_seconds",
    metavar="TIME",
    callback=_seconds,
    help="Limit of one computation of the bundle (10s).",
)
agent_option = click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="[ROLE=]NAME",
    shell_complete=complete_agents,
    help="Who answers for the roles, or for one role. May be repeated.",
)


WORKSPACE_OPTIONS = (
    click.option(
        "--workspace",
        type=click.Path(path_type=Path),
        callback=lambda _context, _parameter, value: value and value.absolute(),
        metavar="DIR",
        help="The repository to work on (default: here).",
    ),
    click.option(
        "--include-changes",
        is_flag=True,
        help="Take uncommitted changes along instead of refusing.",
    ),
    click.option(
        "--link",
        "links",
        multiple=True,
        metavar="NAME",
        help="An ignored directory to link into the worktree. May be repeated.",
    ),
    click.option("--test-command", metavar="CMD", help="How the repository's tests are run."),
)


def workspace_options(command: Decorated) -> Decorated:
    """Where roles work and how tests are run, as keywords that RunOptions takes."""
    for option in reversed(WORKSPACE_OPTIONS):
        command = option(command)
    return command


def limit_options(command: Decorated) -> Decorated:
    """The limits, as keywords that RunOptions takes."""
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


def parse_agents(values: Iterable[str]) -> dict[str, str]:
    """Return agent by role; the default agent stands under the empty role."""
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
