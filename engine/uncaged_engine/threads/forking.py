"""New journal of a fork: start record, the kept steps of its source, a workspace of its own. It is
on disk before it is driven.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.records import replace
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store

from ..door.preparing import NewThread, RunOptions
from ..journal import chain, durable
from ..journal.blobs import BlobDirectory
from ..journal.file import create
from ..journal.origin import USED, ThreadOrigin
from ..journal.recover import recover
from ..settings.config import Config
from ..state.observe import step_records, view, view_of
from .cutting import Cut, Replacement, copied_lines, fork_start, kept_steps, replacement_of
from .preparing import prepare_fork, secure_fork
from .starting import ENTROPY_BYTES, Chance, granted_bundle, start_line


def make_fork(
    store: Store,
    registry: Registry,
    place: tuple[BundleHash, ThreadId, Path],
    *,
    config: Config,
    chance: Chance,
    cut: Cut,
    target: BundleHash,
    instead: Replacement | None,
    options: RunOptions,
    thread: ThreadId | None = None,
) -> tuple[BundleHash, ThreadId]:
    """Write a fork's journal, which no worker drives yet.

    Args:
        place: the source. target: the version to go on with. thread: its id.
    Raises:
        RefusedError: the version cannot start from steps. As `kept_steps` and `replacement_of`,
            before anything is written.
    """
    source_hash, source, path = place
    durably = durable.read(path)
    data, history = durably.data, recover(durably.data, source_hash, source)
    found = view_of(history, durably, store, place, locked=False)
    record = found.start
    elsewhere = ThreadOrigin.of(path)
    if elsewhere is not None:
        # a fork of it is bound anew
        record = {key: value for key, value in record.items() if key in USED}
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
            next(
                (
                    line["intent"]
                    for line in found.records
                    if line.get("seq") == kept and "intent" in line
                ),
                None,
            ),
        )
    )
    now_ms = chance.clock_ms()
    thread = thread or new_thread_id(now_ms, chance.entropy(ENTROPY_BYTES))
    start: dict[str, Any] = fork_start(record, history, kept, thread=thread, target=target)
    new = NewThread(
        thread_id=thread,
        flow=str(start["name"]),
        bundle=bundle,
        store=store,
        config=config,
        options=options,
        now_ms=now_ms,
    )
    if elsewhere is None:
        start = _refitted(start, new)
    if instead is not None:
        start["forkFrom"] = {**start["forkFrom"], "instead": True}
    secure_fork(new, start, step_records(history, BlobDirectory(store.blobs))[:kept])
    line = start_line(store, start, now_ms)
    begun = chain.link(chain.seed(target, thread), line)
    copied = copied_lines(data[: history.good_bytes], kept, begun, made_up)
    journal = store.data_path(target, thread)
    if elsewhere is not None:
        journal.parent.mkdir(mode=0o700, exist_ok=True)
        replace(elsewhere, bytes=len(copied), steps=min(kept, elsewhere.steps)).write(journal)
    store.note_start(thread)
    create(journal, line, target, thread, more=copied)
    return target, thread


def target_of(
    store: Store, registry: Registry, source: tuple[BundleHash, ThreadId, Path], on: str | None
) -> BundleHash:
    """Return the hash of the version that a fork of *source* runs."""
    if on is None:
        return source[0]
    return registry.resolve(str(view(store, *source).start["name"]) if on == "head" else on)[1]


def _refitted(start: dict[str, Any], thread: NewThread) -> dict[str, Any]:
    """Return the source's start record with what a fork may change: limits, and what its effects
    need of their own.
    """
    parameters = start["parameters"]
    limited = {
        **start,
        "parameters": {
            **parameters,
            "options": {**parameters["options"], **thread.options.limits()},
        },
    }
    return {**limited, **prepare_fork(thread, start)}
