"""A fork is a new journal on disk before anything is driven: its start record, the kept steps of its source, and a workspace of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..journal import chain, durable
from ..journal.blobs import Blobs
from ..journal.journal import create
from ..journal.origin import USED, ThreadOrigin
from ..journal.recover import recover
from ..settings.config import Config
from ..state.observe import step_records, view
from .cutting import Cut, Instead, copied_lines, fork_start, kept_steps, replacement_of
from .starting import ENTROPY_BYTES, Chance, RunOptions, bind_agents, granted_bundle, pin_workspace, start_line


def make_fork(
    store: Store,
    registry: Registry,
    text: str,
    *,
    config: Config,
    chance: Chance,
    cut: Cut,
    on: str | None,
    instead: Instead | None,
    options: RunOptions,
    thread: ThreadId | None = None,
) -> tuple[BundleHash, ThreadId]:
    """Write a fork's journal, which nobody drives yet.

    Args:
        text: names the source. on: the version to go on with: a hash, a flow name, or ``head``; None: the source's. thread: its id.
    Raises:
        RefusedError: the version cannot start from steps. As `kept_steps` and `replacement_of`, before anything is written.
    """
    source_hash, source, path = store.locate_thread(text)
    data = durable.read(path).data
    history = recover(data, source_hash, source)
    found = view(store, source_hash, source, path)
    record = found.start
    elsewhere = ThreadOrigin.of(path)
    if elsewhere is not None:
        record = {key: value for key, value in record.items() if key in USED}  # a fork of it is bound anew
    target = target_of(store, registry, (source_hash, source, path), on)
    bundle = granted_bundle(store, registry, target)
    kept = kept_steps(history, cut, source)
    if kept and (target != source_hash or bundle.trusted) and not bundle.descriptor.continues:
        raise RefusedError(
            f"bundle {target} cannot start from another version's steps: its descriptor does not say `continues`; use --at 0"
        )
    made_up = (
        None
        if instead is None
        else replacement_of(
            instead.value,
            history,
            kept,
            bundle.descriptor.roles,
            next((line["intent"] for line in found.records if line.get("seq") == kept and "intent" in line), None),
        )
    )
    now_ms = chance.clock_ms()
    thread = thread or new_thread_id(now_ms, chance.entropy(ENTROPY_BYTES))
    start: dict[str, Any] = fork_start(record, history, kept, thread=thread, target=target)
    if elsewhere is None:
        start = _refitted(start, bundle, config, options)
    if instead is not None:
        start["forkFrom"] = {**start["forkFrom"], "instead": True}
    pin_workspace(start, step_records(history, Blobs(store.blobs))[:kept], store, options)
    line = start_line(store, start, now_ms)
    begun = chain.link(chain.seed(target, thread), line)
    copied = copied_lines(data[: history.good_bytes], kept, begun, made_up)
    place = store.data_path(target, thread)
    if elsewhere is not None:
        place.parent.mkdir(mode=0o700, exist_ok=True)
        replace(elsewhere, bytes=len(copied), steps=min(kept, elsewhere.steps)).write(place)
    store.note_start(thread)
    create(place, line, target, thread, more=copied)
    return target, thread


def lacks_agent(agents: object, bundle: Bundle) -> bool:
    """Return whether *bundle* may ask for a role that the source's record names no agent for."""
    known = agents if isinstance(agents, Mapping) else {}
    return not known.get("default") and not set(bundle.descriptor.asked_roles) <= set(known.get("roles", {}))


def target_of(store: Store, registry: Registry, source: tuple[BundleHash, ThreadId, Path], on: str | None) -> BundleHash:
    """Return the hash of the version that a fork of *source* runs."""
    if on is None:
        return source[0]
    return registry.resolve(str(view(store, *source).start["name"]) if on == "head" else on)[1]


def _refitted(start: dict[str, Any], bundle: Bundle, config: Config, options: RunOptions) -> dict[str, Any]:
    """What a fork may change of its source's start record: limits and agents; and it works on a branch of its own."""
    parameters = start["parameters"]
    fitted = {**start, "parameters": {**parameters, "options": {**parameters["options"], **options.limits()}}}
    if options.agents or lacks_agent(start.get("agents"), bundle):
        fitted["agents"] = bind_agents(config, bundle, str(start["name"]), options)
    if "workspace" in start:
        from uncaged_agents.workspace import forked

        fitted["workspace"] = forked(start["workspace"], thread_id=start["threadId"], flow=str(start["name"]))
    return fitted
