"""Arguments and options that several verbs take are declared once, with their completion;
completing imports nothing heavy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem
from uncaged_bundles.errors import UncagedError, UsageError

from ..display.durations import parse_age

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]

ROLE_BINDING = re.compile(r"\s*([a-zA-Z][a-zA-Z0-9_-]*)\s*=(.*)", re.DOTALL)
"""``coder=claude``; but ``command:tool --x=y`` is an agent for all roles."""
MAX_COMPLETED_THREADS = 50
MAX_COMPLETED_PROGRAMS = 200
HEAD = "head"
"""Where a version is wanted: the present one of the flow in question."""


def complete_flows(
    _context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Names of the registry's flows."""
    from uncaged_bundles.storage.registry import Registry
    from uncaged_bundles.storage.store import Store

    try:
        names = Registry(Store.open()).names(incomplete)
    except (UncagedError, OSError):
        return []  # a shell in the middle of a line wants no error
    return [CompletionItem(name) for name in names]


def complete_versions(
    context: click.Context, parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """``head`` and the names of flows."""
    return [CompletionItem(HEAD)] * HEAD.startswith(incomplete) + complete_flows(
        context, parameter, incomplete
    )


def complete_former(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """The former versions of the flow that stands before on the line."""
    from uncaged_bundles.storage.registry import Registry
    from uncaged_bundles.storage.store import Store

    try:
        flow = Registry(Store.open()).flow(str(context.params.get("flow")))
    except (UncagedError, OSError):
        return []
    hashes = dict.fromkeys(version.hash for version in flow.history) if flow else {}
    return [CompletionItem(name) for name in hashes if name.startswith(incomplete.upper())]


def complete_threads(
    _context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """``latest`` and the newest thread ids."""
    from uncaged_bundles.storage.store import LATEST, Store
    from uncaged_engine.threads.names import newest_ids

    named = [LATEST] * LATEST.startswith(incomplete)
    try:
        ids = newest_ids(Store.open(), incomplete.upper(), MAX_COMPLETED_THREADS - len(named))
    except (UncagedError, OSError):
        return []
    return [CompletionItem(name) for name in (*named, *ids)]


def complete_agents(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Names of configured agents and kinds of agent, and ``ROLE=`` before them for the roles of the
    flow or thread on the line.
    """
    from uncaged_agents.kinds import kinds
    from uncaged_bundles.storage.store import Store
    from uncaged_engine.settings.loading import load

    role, equals, _ = incomplete.partition("=")
    try:
        agents = sorted({*load(Store.open()).agents, *kinds()})
    except (UncagedError, OSError):
        return []
    words = (
        [f"{role}={name}" for name in agents]
        if equals
        else [*agents, *(f"{name}=" for name in _roles(context))]
    )
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def complete_roles(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Roles of the flow or thread that stands before on the line."""
    return [CompletionItem(name) for name in _roles(context) if name.startswith(incomplete)]


def complete_programs(
    _context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Programs on PATH."""
    found: set[str] = set()
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        with suppress(OSError):
            found.update(
                entry.name
                for entry in os.scandir(directory or ".")
                if entry.name.startswith(incomplete)
            )
    return [CompletionItem(name) for name in sorted(found)[:MAX_COMPLETED_PROGRAMS]]


def complete_patterns(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Sentence patterns of the flow that stands before on the line."""
    patterns = _descriptor_raw(context).get("patterns")
    listed = patterns if isinstance(patterns, list) else []
    return [
        CompletionItem(pattern) for pattern in map(str, listed) if pattern.startswith(incomplete)
    ]


def _roles(context: click.Context) -> list[str]:
    roles = _descriptor_raw(context).get("roles")
    return list(roles) if isinstance(roles, Mapping) else []


def _descriptor_raw(context: click.Context) -> Mapping[str, object]:
    """Return the descriptor of the flow or thread that stands before on the line; empty if there is
    none.
    """
    from uncaged_bundles.storage.registry import Registry
    from uncaged_bundles.storage.store import Store

    flow, thread = context.params.get("flow"), context.params.get("thread")
    try:
        store = Store.open()
        bundle = (
            Registry(store).resolve(str(flow))[1] if flow else store.locate_thread(str(thread))[0]
        )
        return store.load_bundle(bundle).descriptor.raw
    except (UncagedError, OSError):
        return {}


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
