"""`/api/flows`: flows, their versions, permissions, graphs, and decisions about them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.policy import widening
from uncaged_bundles.storage.snapshot import Flow
from uncaged_engine.api import Engine, ThreadSummary
from uncaged_engine.services.flows import (
    MAX_THREADS_READ,
    compare,
    find_version,
    flow_graph,
    former_hash,
    layout,
    load_version,
)
from uncaged_engine.services.registry import KNOWN
from uncaged_engine.services.thread_pages import ThreadFilter

from ..timelines import read_timeline
from .endpoints import MOST_READ, ApiEndpoint, Asked
from .flow_shapes import (
    Changed,
    DifferenceQuery,
    FlowDocument,
    FlowList,
    GraphDocument,
    RollbackBody,
    VersionChanges,
)

PURE = "nothing: it only computes and has no effects"
PAST_THREADS = 50
"""Ended threads whose durations and costs are shown."""
ENDED = frozenset(("completed", "failed"))
LIVE = frozenset(("running", "waiting", "paused"))
MOST_LIVE = 20


def flows(engine: Engine, asked: Asked) -> object:  # noqa: ARG001
    snapshot = engine.registry.read()
    return {
        "flows": [
            {
                "flow": one.name,
                "hash": one.hash,
                "sinceMs": one.timestamp_ms,
                "enabled": one.enabled,
                "versions": len(one.versions),
                "source": one.source,
                "unsupported": one.unsupported,
            }
            for one in sorted(snapshot.flows.values(), key=lambda one: one.name)
        ],
        "problems": list(snapshot.problems),
    }


def flow(engine: Engine, asked: Asked) -> object:
    entry, bundle_hash = find_version(engine.registry, asked.path["flow"])
    bundle = engine.bundle(bundle_hash)
    descriptor = bundle.descriptor
    raw = descriptor.raw
    estimate = asdict(engine.estimate(bundle_hash))
    estimate["threads"] = estimate.pop("n")
    return {
        "flow": entry.name if entry else None,
        "hash": bundle_hash,
        "description": descriptor.description,
        "kind": descriptor.kind,
        "enabled": entry.enabled if entry else None,
        "mayDo": list(widening(None, descriptor.policy, KNOWN) or (PURE,)),
        "roles": {role.name: role.description for role in descriptor.roles.values()},
        "parameters": dict(descriptor.parameters),
        "patterns": [str(one) for one in _listed(raw.get("patterns"))],
        "examples": list(_listed(raw.get("examples"))),
        "versions": [
            {"hash": one.hash, "sinceMs": one.timestamp_ms}
            for one in (entry.versions if entry else ())
        ],
        "past": [_past(one) for one in _threads(engine, entry, PAST_THREADS, ENDED)],
        "estimate": estimate,
        "trusted": bundle.trusted,
    }


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else []


def _threads(
    engine: Engine, entry: Flow | None, limit: int, statuses: Collection[str] = ()
) -> tuple[ThreadSummary, ...]:
    """Return the newest threads of a flow, by the index."""
    if entry is None:
        return ()
    versions = frozenset(one.hash for one in entry.versions)
    wanted = ThreadFilter(statuses=statuses, flow=entry.name, versions=versions)
    return engine.page(wanted, limit=limit, most_read=MOST_READ).threads


def _past(thread: ThreadSummary) -> dict[str, object]:
    return {
        "threadId": thread.thread_id,
        "status": thread.status,
        "success": thread.success,
        "startedMs": thread.started_ms,
        "durationMs": max(0, thread.updated_ms - thread.started_ms),
        "cost": thread.spent.cost,
    }


def graph(engine: Engine, asked: Asked) -> object:
    config = engine.config
    entry, bundle_hash = find_version(engine.registry, asked.path["flow"])
    found = flow_graph(
        engine.store,
        engine.bundle(bundle_hash),
        lambda: _threads(engine, entry, MAX_THREADS_READ),
        prefer=config.sandbox,
        deadline_s=config.limits.bundle_s,
    )
    live = _threads(engine, entry, MOST_LIVE, LIVE)
    roles = (_current_role(engine, one) for one in live)
    return {
        "origin": found.origin,
        "drawing": layout(found.edges, found.counts.items()).document(),
        "live": sorted({role for role in roles if role is not None}),
        "running": any(one.status == "running" for one in live),
    }


def _current_role(engine: Engine, thread: ThreadSummary) -> str | None:
    """Return the role that a thread asks now."""
    try:
        place = engine.store.locate_thread(thread.thread_id)
        step = read_timeline(engine, place).count.open_step()
    except UncagedError:
        return None
    return str(step["label"]) if step is not None and step["kind"] == "role" else None


def difference(engine: Engine, asked: Asked) -> object:
    old, new = (
        load_version(engine.store, engine.registry, text)
        for text in (asked.query.old, asked.query.new)
    )
    return {
        "old": old.hash,
        "new": new.hash,
        "sections": {one.title: list(one.lines) for one in compare(old, new)},
    }


def enable(engine: Engine, asked: Asked) -> object:
    return _set_enabled(engine, asked.path["flow"], enabled=True)


def disable(engine: Engine, asked: Asked) -> object:
    return _set_enabled(engine, asked.path["flow"], enabled=False)


def _set_enabled(engine: Engine, name: str, *, enabled: bool) -> object:
    found = engine.registry.entry(name)
    engine.registry.set_enabled(found.name, enabled)
    return {"flow": found.name, "hash": found.hash, "enabled": enabled}


def rollback(engine: Engine, asked: Asked) -> object:
    entry = engine.registry.entry(asked.path["flow"])
    wanted = former_hash(entry, asked.body.hash) if asked.body.hash else None
    after = engine.registry.rollback(entry.name, wanted)
    return {"flow": after.name, "hash": after.hash, "enabled": after.enabled}


FLOW = "/api/flows/{flow}"
ENDPOINTS = (
    ApiEndpoint(
        method="GET",
        path="/api/flows",
        summary="Flows of the registry",
        handler=flows,
        answer=FlowList,
    ),
    ApiEndpoint(
        method="GET",
        path="/api/difference",
        summary="Difference of two versions: permissions first",
        handler=difference,
        query=DifferenceQuery,
        answer=VersionChanges,
    ),
    ApiEndpoint(
        method="GET",
        path=FLOW,
        summary="A flow: permissions, parameters, versions, past threads",
        handler=flow,
        answer=FlowDocument,
    ),
    ApiEndpoint(
        method="GET",
        path=f"{FLOW}/graph",
        summary="The drawn graph of a flow, with the roles at which threads are now",
        handler=graph,
        answer=GraphDocument,
    ),
    ApiEndpoint(
        method="POST",
        path=f"{FLOW}/enable",
        summary="Let a flow start threads",
        handler=enable,
        answer=Changed,
    ),
    ApiEndpoint(
        method="POST",
        path=f"{FLOW}/disable",
        summary="Keep a flow from starting threads",
        handler=disable,
        answer=Changed,
    ),
    ApiEndpoint(
        method="POST",
        path=f"{FLOW}/rollback",
        summary="Return a flow to a former version",
        handler=rollback,
        body=RollbackBody,
        answer=Changed,
    ),
)
