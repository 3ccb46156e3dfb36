"""Driving of a shared store's threads in this process; the store is a directory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from testbed.bundles import PLANNED, place, thread_id
from testbed.driving import driven_here, no_child, no_driver
from testbed.interleaving import just_before
from testbed.journals import NOW_MS
from testbed.roles import EffectHarness, role_bundle
from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_engine.door.preparing import NewThread, RunOptions
from uncaged_engine.journal import lines
from uncaged_engine.settings.config import AgentSettings, Config
from uncaged_engine.shared import driving
from uncaged_engine.shared.dispatch import ThreadExchange
from uncaged_engine.shared.driving import StoreLost, ThreadDriving, WorkerPlace
from uncaged_engine.shared.replica import Replica, replica
from uncaged_engine.shared.starting import require_carried, require_files, require_repository
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.stores.directory.owners import FileOwner
from uncaged_engine.stores.protocol import FenceRaised, StoreBackend
from uncaged_engine.threads.children import options_of
from uncaged_engine.threads.preparing import prepare
from uncaged_engine.threads.scratch import scratch_store
from uncaged_engine.threads.starting import Chance

PLAN = [
    {"null": {"value": 1}},
    {"null": {"value": "v", "times": lines.SPILL_BYTES + 1000}},
    {"null": {"fail": "no"}},
    {"output": {"role": "r", "content": "c", "meta": {}}},
]
"""Effects with a blob, a failure, and a step without an intent."""
PATIENCE_S = 120


@pytest.fixture
def backend(tmp_path: Path) -> StoreBackend:
    return DirectoryBackend(Store.open(tmp_path / "shared"))


@pytest.fixture
def copies(backend: StoreBackend, tmp_path: Path) -> Iterator[Replica]:
    with replica(backend, Store.open(tmp_path / "home"), Chance(clock_ms=lambda: NOW_MS)) as made:
        yield made


@pytest.fixture
def threads(copies: Replica, tmp_path: Path) -> Iterator[ThreadDriving]:
    where = WorkerPlace(directory=tmp_path, environment={}, clock_ms=lambda: NOW_MS)
    with closing(
        ThreadDriving(copies, where, lambda _thread, _problem: None, no_child, no_driver)
    ) as made:
        yield made


def test_a_driven_thread_has_the_bytes_of_a_local_run(
    store: Store, backend: StoreBackend, copies: Replica, threads: ThreadDriving
) -> None:
    """The same outcomes give the same lines and blobs; each step is recorded once, in order. Driven
    again, the ended thread records its steps anew and writes nothing.
    """
    placed = place(store, PLANNED, params={"plan": PLAN})
    copy_store(DirectoryBackend(store), backend, replace=False, progress=lambda _kind, _count: None)
    local = driven_here(store, placed.thread)
    recorded: list[ThreadExchange] = []
    assert threads.drive(placed.bundle.hash, placed.thread, 0, recorded.append) == "completed"
    kept = backend.threads.read(placed.bundle.hash, placed.thread)
    assert b"".join(kept) == local
    assert sorted(backend.blobs.names()) == sorted(path.name for path in store.blobs.iterdir())
    assert [one.kind for one in recorded] == ["null", "null", "null", "output"]
    assert b"takes it up" in backend.threads.notes(placed.bundle.hash, placed.thread).info
    assert list(copies.files.logs.rglob("*.jsonl")) == []
    again: list[ThreadExchange] = []
    assert threads.drive(placed.bundle.hash, placed.thread, 0, again.append) == "completed"
    assert again == recorded
    later: list[ThreadExchange] = []
    half = 1 + next(at for at, line in enumerate(kept) if line.startswith(b'{"seq":2,"intent"'))
    assert threads.drive(placed.bundle.hash, placed.thread, half, later.append) == "completed"
    assert later == recorded[1:]  # its intent was before
    assert backend.threads.read(placed.bundle.hash, placed.thread) == kept


def test_a_step_is_recorded_while_the_next_one_is_performed(
    store: Store, backend: StoreBackend, threads: ThreadDriving
) -> None:
    """And the thread goes no further than that: without a record of step 1, step 2 is its last."""
    placed = place(store, PLANNED, params={"plan": [{"null": {"value": 1}}] * 5})
    copy_store(DirectoryBackend(store), backend, replace=False, progress=lambda _kind, _count: None)
    give_up_s = time.monotonic() + PATIENCE_S

    def fail_late(_exchange: ThreadExchange) -> None:
        # the intent of step 3 may come later: a bundle that takes long has this line flushed alone
        while not any(b'{"seq":2,"outcome"' in line for line in lines_in()):
            assert time.monotonic() < give_up_s
            time.sleep(0.01)
        raise DamagedError("another record")

    def lines_in() -> list[bytes]:
        return backend.threads.read(placed.bundle.hash, placed.thread)

    assert threads.drive(placed.bundle.hash, placed.thread, 0, fail_late) == "interrupted"
    assert not any(line.startswith(b'{"seq":3,"outcome"') for line in lines_in())
    recorded: list[ThreadExchange] = []
    assert threads.drive(placed.bundle.hash, placed.thread, 0, recorded.append) == "completed"
    assert [one.seq for one in recorded] == [1, 2, 3, 4, 5]


def test_an_owner_that_was_taken_over_reports_no_word(
    store: Store,
    backend: StoreBackend,
    threads: ThreadDriving,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its caller must end: a word would settle a thread that another worker drives."""
    placed = place(store, PLANNED, params={"plan": PLAN[:1]})
    copy_store(DirectoryBackend(store), backend, replace=False, progress=lambda _kind, _count: None)

    def refuse() -> None:
        raise FenceRaised("taken over")

    just_before(monkeypatch, FileOwner, "append", refuse)
    with pytest.raises(StoreLost, match="taken over"):
        threads.drive(placed.bundle.hash, placed.thread, 0, lambda _exchange: None)
    assert len(backend.threads.read(placed.bundle.hash, placed.thread)) == 1


def test_a_bundle_that_was_not_granted_in_the_store_is_not_executed(
    store: Store, backend: StoreBackend, tmp_path: Path, copies: Replica
) -> None:
    """A worker trusts the registry of its store, and leaves the thread as it was."""
    placed = place(store, PLANNED, params={"plan": PLAN[:1]})
    copy_store(DirectoryBackend(store), backend, replace=False, progress=lambda _kind, _count: None)
    found = backend.registry.read()
    assert found is not None
    backend.registry.replace(b"flows: {}\n", version=found.version)
    reported: list[str] = []
    where = WorkerPlace(directory=tmp_path, environment={}, clock_ms=lambda: NOW_MS)
    with closing(
        ThreadDriving(copies, where, lambda _thread, why: reported.append(why), no_child, no_driver)
    ) as made:
        word = made.drive(placed.bundle.hash, placed.thread, 0, lambda _exchange: None)
    assert word == "interrupted"
    assert "not granted" in reported[0] and len(reported) == 1
    assert len(backend.threads.read(placed.bundle.hash, placed.thread)) == 1


def test_a_flow_is_named_by_its_name_or_the_start_of_a_hash(
    store: Store, backend: StoreBackend, copies: Replica
) -> None:
    """Without a name, a hash needs no flow. A disabled flow is refused."""
    bundle = place(store, PLANNED).bundle
    registry = Registry(store)
    registry.add("planned", bundle, now_ms=NOW_MS, granted=True)
    unnamed = place(store).bundle
    copy_store(DirectoryBackend(store), backend, replace=False, progress=lambda _kind, _count: None)
    assert copies.resolve("planned") == ("planned", bundle.hash)
    for text in (unnamed.hash, unnamed.hash[:6].lower()):
        assert copies.resolve(text) == (None, unnamed.hash)
    with pytest.raises(NotFoundError, match="no flow 'other'"):
        copies.resolve("other")
    registry.set_enabled("planned", False)
    copy_store(DirectoryBackend(store), backend, replace=True, progress=lambda _kind, _count: None)
    with pytest.raises(RefusedError, match="enable planned"):
        copies.resolve("planned")


def test_a_submitted_thread_that_was_never_written_is_given_up(
    store: Store, threads: ThreadDriving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its starter died in between."""
    monkeypatch.setattr(driving, "START_GRACE_S", 0)
    placed = place(store, PLANNED)
    word = threads.drive(placed.bundle.hash, placed.thread, 0, lambda _exchange: None)
    assert word == driving.MISSING


def test_a_trial_sees_the_flows_of_the_shared_store(
    store: Store, backend: StoreBackend, copies: Replica
) -> None:
    """Not those of this machine's directory."""
    bundle = place(store, PLANNED).bundle
    copy_store(DirectoryBackend(store), backend, replace=False, progress=lambda _kind, _count: None)
    copies.registry.refresh()
    with scratch_store(copies.files, Chance(clock_ms=lambda: NOW_MS), None) as scratch:
        assert scratch.load_bundle(bundle.hash).source == bundle.source
        assert scratch.registry_path.read_bytes() == store.registry_path.read_bytes()


def test_a_flow_that_needs_the_starting_machine_is_refused(store: Store) -> None:
    """By the tabs of a browser, or by files that were not carried, as in a thread that was started
    in a directory and copied.
    """
    bundle = place(store).bundle
    require_carried(bundle)
    require_files(bundle, {"workspace": {"repository": "/shop", "gitPack": "0" * 32}})
    with pytest.raises(RefusedError, match="works in /shop, whose files are not in this store"):
        require_files(bundle, {"workspace": {"repository": "/shop"}})
    text = PLANNED.replace(b"'null': {}", b"'browser': {'profile': 'kept'}")
    text = text.replace(b"'planned'", b"'browsing'")
    with pytest.raises(RefusedError, match="browsing uses the tabs and logins of one machine"):
        require_carried(place(store, text, number=1).bundle)


def test_a_child_works_on_its_parents_commit(copies: Replica) -> None:
    """A role or a flow calls it: not in a repository of the worker's, but on a branch of its own.
    Without files of its parent it is refused.
    """
    works = role_bundle()
    with pytest.raises(RefusedError, match="the thread that calls it has none"):
        require_repository(works, RunOptions())
    require_repository(role_bundle(policy={"role": {}}), RunOptions())
    workspace = {"repository": "/shop", "base": "0" * 40, "branch": "b", "gitPack": "0" * 32}
    parent = EffectHarness(
        store=copies.files, bundle=works, start={"workspace": workspace}, environment={}
    )
    options = options_of(parent.context(1))
    require_repository(works, options)
    child = NewThread(
        thread_id=thread_id(7),
        flow="mends",
        bundle=works,
        store=copies.files,
        config=Config(agents={"a": AgentSettings(use="person", settings={})}, agent="a"),
        options=options,
        now_ms=NOW_MS,
    )
    branch = f"uncaged/mends/{thread_id(7)[:14].lower()}"
    assert prepare(child)["workspace"] == {**workspace, "branch": branch}


def test_a_dropped_copy_takes_its_repository_with_it(copies: Replica) -> None:
    """It was made of the thread's packs, for a difference between files."""
    private = copies.files.private(thread_id(7))
    (private / "repository.git").mkdir(parents=True)
    copies.drop_journal(role_bundle().hash, thread_id(7))
    assert not private.exists()
