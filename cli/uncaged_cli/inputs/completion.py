"""Shell completion of flows, versions, threads, agents, roles and programs. Imports nothing heavy;
an error completes to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem
from uncaged_bundles.errors import UncagedError

MAX_COMPLETED_THREADS = 50
MAX_COMPLETED_PROGRAMS = 200
HEAD = "head"
"""The name of a flow's current version, wherever a version is asked for."""


def complete_flows(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of flows."""
    from uncaged_bundles.storage.registry import Registry
    from uncaged_bundles.storage.store import Store

    from .shared_completion import shared_flows

    try:
        shared = shared_flows(context)
        names = (
            Registry(Store.open()).names(incomplete)
            if shared is None
            else [name for name in shared.flows if name.startswith(incomplete)]
        )
    except (UncagedError, OSError):
        return []  # an error would break the line that is being typed
    return [CompletionItem(name) for name in names]


def complete_conversations(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete the names of conversations; not of a shared store, where each would be read over the
    network.
    """
    from uncaged_bundles.storage.store import Store
    from uncaged_dispatcher.conversations.catalog import list_conversations

    from .stores import names_shared

    if names_shared(context):
        return []
    try:
        found = list_conversations(Store.open())
    except (UncagedError, OSError):
        return []
    return [CompletionItem(one.name) for one in found if one.name.startswith(incomplete)]


def complete_proposals(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete the ids of open proposals; not of a shared store, as `complete_conversations`."""
    from uncaged_bundles.storage.store import Store
    from uncaged_engine.proposals import Proposals

    from .stores import names_shared

    if names_shared(context):
        return []
    try:
        found = Proposals(Store.open()).all()
    except (UncagedError, OSError):
        return []
    return [
        CompletionItem(one.id)
        for one in found
        if one.state == "open" and one.id.startswith(incomplete.upper())
    ]


def complete_versions(
    context: click.Context, parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete ``head`` and the names of flows."""
    return [CompletionItem(HEAD)] * HEAD.startswith(incomplete) + complete_flows(
        context, parameter, incomplete
    )


def complete_former(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete the former versions of the flow named before on the line."""
    from uncaged_bundles.storage.registry import Registry
    from uncaged_bundles.storage.store import Store

    from .shared_completion import shared_flows

    name = str(context.params.get("flow"))
    try:
        shared = shared_flows(context)
        flow = Registry(Store.open()).flow(name) if shared is None else shared.flows.get(name)
    except (UncagedError, OSError):
        return []
    hashes = dict.fromkeys(version.hash for version in flow.history) if flow else {}
    return [CompletionItem(hash) for hash in hashes if hash.startswith(incomplete.upper())]


def complete_threads(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete ``latest`` and the newest thread ids; of a shared store ``latest`` alone, since a
    server may be slow to answer.
    """
    from uncaged_bundles.storage.store import LATEST, Store
    from uncaged_engine.threads.names import newest_ids

    from .stores import names_shared

    named = [LATEST] * LATEST.startswith(incomplete)
    if names_shared(context):
        return [CompletionItem(name) for name in named]
    try:
        ids = newest_ids(Store.open(), incomplete.upper(), MAX_COMPLETED_THREADS - len(named))
    except (UncagedError, OSError):
        return []
    return [CompletionItem(name) for name in (*named, *ids)]


def complete_agents(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete configured agents and agent kinds, and ``ROLE=`` for the roles of the flow or thread
    on the line.
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


def complete_agent_settings(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete ``KEY=`` for the agent of all roles, and ``ROLE.KEY=`` for that of a role."""
    from uncaged_agents.choice import agent_named
    from uncaged_agents.kinds import kind_of
    from uncaged_bundles.storage.store import Store
    from uncaged_engine.settings.loading import load

    from .options import parse_agents

    role, dot, _ = incomplete.rpartition(".")
    try:
        config = load(Store.open())
        named = parse_agents(context.params.get("agents") or ())
        name = named.get(role) or named.get("") or config.agent or "repair"
        keys = kind_of(agent_named(name, config, "", Path.cwd()).use).keys
    except (UncagedError, OSError):
        return []
    words = [f"{role}{dot}{key}=" for key in keys]
    if not dot:
        words += [f"{name}." for name in _roles(context)]
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def complete_roles(
    context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete the roles of the flow or thread named before on the line."""
    return [CompletionItem(name) for name in _roles(context) if name.startswith(incomplete)]


def complete_programs(
    _context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete programs on PATH."""
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
    """Complete the sentence patterns of the flow named before on the line."""
    patterns = _descriptor_raw(context).get("patterns")
    listed = patterns if isinstance(patterns, list) else []
    return [
        CompletionItem(pattern) for pattern in map(str, listed) if pattern.startswith(incomplete)
    ]


def _roles(context: click.Context) -> list[str]:
    roles = _descriptor_raw(context).get("roles")
    return list(roles) if isinstance(roles, Mapping) else []


def _descriptor_raw(context: click.Context) -> Mapping[str, object]:
    """Return the descriptor of the flow or thread named before on the line; empty if there
    is none.
    """
    from uncaged_bundles.storage.registry import Registry
    from uncaged_bundles.storage.store import Store

    from .stores import names_shared

    if names_shared(context):
        return {}
    flow, thread = context.params.get("flow"), context.params.get("thread")
    try:
        store = Store.open()
        bundle = (
            Registry(store).resolve(str(flow))[1] if flow else store.locate_thread(str(thread))[0]
        )
        return store.load_bundle(bundle).descriptor.raw
    except (UncagedError, OSError):
        return {}
