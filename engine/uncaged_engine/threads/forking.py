"""Journal of a fork: start record, the kept steps of its source, a workspace of its own. It is on
disk before a worker drives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_bundles.records import dataclass, replace
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..cells.replay import Replay
from ..door.preparing import NewThread, RunOptions
from ..journal import chain, durable
from ..journal.blobs import BlobDirectory
from ..journal.file import create
from ..journal.origin import USED, ThreadOrigin
from ..journal.recover import History, recover
from ..sandbox.mechanism import choose
from ..settings.config import Config
from ..state.observe import ThreadView, step_records, view, view_of
from .binding import ThreadBinding
from .cutting import Cut, Replacement, copied_lines, fork_start, kept_steps, replacement_of
from .preparing import prepare_fork, secure_fork
from .regression import PastThread, first_difference
from .starting import ENTROPY_BYTES, Chance, granted_bundle, start_line


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPlan:
    """A fork that was checked and is not written yet.

    new: the fork, with its options. start: its start record. data: the journal of its source, as
    far as it is whole. kept: how many of its steps. steps: these, as the effect kinds get them.
    replaced: the fields of the last one, if its outcome is another. elsewhere: the origin of an
    imported source. binding: that of the fork, if its source is imported and it will run.
    """

    new: NewThread
    start: Mapping[str, Any]
    data: bytes
    kept: int
    steps: Sequence[Mapping[str, object]]
    replaced: dict[str, object] | None
    elsewhere: ThreadOrigin | None
    binding: ThreadBinding | None
    other_version: bool


def plan_fork(
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
    binding: ThreadBinding | None,
) -> ForkPlan:
    """Check a fork; nothing is written.

    Args:
        place: the source. target: the version to run. binding: as in the plan.
    Raises:
        RefusedError: the version cannot start from steps. As `kept_steps` and `replacement_of`.
    """
    source_hash, source, path = place
    durably = durable.read(path)
    history = recover(durably.data, source_hash, source)
    found = view_of(history, durably, store, place, locked=False)
    elsewhere = ThreadOrigin.of(path)
    bundle = granted_bundle(store, registry, target)
    kept = kept_steps(history, cut, source)
    other, replayed = target != source_hash, False
    if kept and (other or bundle.trusted) and not bundle.descriptor.continues:
        past = PastThread(
            thread_id=source,
            data=durably.data[: history.good_bytes],
            history=history,
            replay=Replay(history, found.start, BlobDirectory(store.blobs), trusted=False),
        )
        _expect_same_steps(bundle, past, kept, config)
        replayed = True
    replaced = None if instead is None else _replaced(instead, found, history, kept, bundle)
    now_ms = chance.clock_ms()
    thread = (
        new_thread_id(now_ms, chance.entropy(ENTROPY_BYTES))
        if binding is None
        else binding.thread.thread_id
    )
    record = found.start if elsewhere is None else _unbound(found.start)
    start: dict[str, Any] = fork_start(
        record, history, kept, thread=thread, target=target, replayed=replayed
    )
    new = NewThread(
        thread_id=thread,
        flow=str(start["name"]),
        bundle=bundle,
        store=store,
        config=config,
        options=options,
        now_ms=now_ms,
    )
    other_version = target != source_hash or "forkFrom" in found.start
    if elsewhere is None:
        start = _refitted(start, new, other_version=other_version)
    if instead is not None:
        start["forkFrom"] = {**start["forkFrom"], "instead": True}
    return ForkPlan(
        new=new,
        start=start,
        data=durably.data[: history.good_bytes],
        kept=kept,
        steps=step_records(history, BlobDirectory(store.blobs))[:kept],
        replaced=replaced,
        elsewhere=elsewhere,
        binding=binding,
        other_version=other_version,
    )


def write_fork(plan: ForkPlan) -> tuple[BundleHash, ThreadId]:
    """Write a fork's journal, which no worker drives yet."""
    new = plan.new
    store, target, thread = new.store, new.bundle.hash, new.thread_id
    if plan.binding is not None:
        plan.binding.secure()
    secure_fork(new, plan.start, plan.steps, other_version=plan.other_version)
    line = start_line(store, plan.start, new.now_ms)
    begun = chain.link(chain.seed(target, thread), line)
    copied = copied_lines(plan.data, plan.kept, begun, plan.replaced)
    _write(store, (target, thread), line, copied, elsewhere=plan.elsewhere, kept=plan.kept)
    return target, thread


def _expect_same_steps(bundle: Bundle, past: PastThread, kept: int, config: Config) -> None:
    """Replay the kept steps with a version that does not take another's as its input.

    Raises:
        RefusedError: it yields other effects, or is not replayed because it is trusted.
    """
    cannot = f"bundle {bundle.hash} cannot start from another version's steps"
    if bundle.trusted or past.history.handed_over:
        raise RefusedError(f"{cannot}: its descriptor does not say `continues`; use --at 0")
    difference = first_difference(
        bundle, past, kept, choose(config.sandbox), deadline_s=config.limits.bundle_s
    )
    if difference is not None:
        raise RefusedError(
            f"{cannot}: its descriptor does not say `continues`, and it does not repeat them ({difference}); use --at 0"
        )


def _replaced(
    instead: Replacement, source: ThreadView, history: History, kept: int, bundle: Bundle
) -> dict[str, object]:
    """Return the fields of the last kept step with its outcome replaced."""
    intents = (
        line["intent"] for line in source.records if line.get("seq") == kept and "intent" in line
    )
    return replacement_of(
        instead.value, history, kept, bundle.descriptor.roles, next(intents, None)
    )


def _unbound(start: Mapping[str, Any]) -> dict[str, Any]:
    """Return the start record of an imported thread without its binding: a fork is bound anew."""
    return {key: value for key, value in start.items() if key in USED}


def _write(
    store: Store,
    place: tuple[BundleHash, ThreadId],
    line: bytes,
    copied: bytes,
    *,
    elsewhere: ThreadOrigin | None,
    kept: int,
) -> None:
    """Bring the fork's journal to disk. *elsewhere*: the origin of an imported source."""
    target, thread = place
    journal = store.data_path(target, thread)
    if elsewhere is not None:
        # before the journal: the copied lines must not look like this machine's after a crash
        journal.parent.mkdir(mode=0o700, exist_ok=True)
        replace(elsewhere, bytes=len(copied), steps=min(kept, elsewhere.steps)).write(journal)
    store.note_start(thread)
    create(journal, line, target, thread, more=copied)


def target_of(
    store: Store, registry: Registry, source: tuple[BundleHash, ThreadId, Path], on: str | None
) -> BundleHash:
    """Return the hash of the version that a fork of *source* runs."""
    if on is None:
        return source[0]
    return registry.resolve(str(view(store, *source).start["name"]) if on == "head" else on)[1]


def _refitted(start: dict[str, Any], thread: NewThread, *, other_version: bool) -> dict[str, Any]:
    """Return the fork's start record with its own limits and the fields that its effects
    prepare.
    """
    parameters = start["parameters"]
    limited = {
        **start,
        "parameters": {
            **parameters,
            "options": {**parameters["options"], **thread.options.recorded()},
        },
    }
    return {**limited, **prepare_fork(thread, start, other_version=other_version)}
