"""Threads without an end that a copy brings into a directory: no automatic takes them up there."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.bundles import granted, place_script, script_of, source, thread_id
from testbed.filled_stores import more_lines
from testbed.journals import NOW_MS, Script
from testbed.processes import end_workers
from testbed.steering import finish
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_cli.display.thread_details import thread_lines
from uncaged_engine.api import Engine
from uncaged_engine.door.children import derived_id
from uncaged_engine.journal import chain, copied
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.threads.ending import ending_of
from uncaged_engine.threads.starting import Chance
from uncaged_schedules.changes import add
from uncaged_schedules.due import due

HOUR_MS = 3_600_000
NAPPING = source(
    "napping",
    """
    yield {"sleep": {"seconds": 1}}
    return {"success": True, "message": "awake"}
""",
    policy={"sleep": {}},
)
ASLEEP, ENDED, DEAD = (thread_id(number) for number in range(3))


def engine_of(store: Store, now_ms: int = NOW_MS + HOUR_MS) -> Engine:
    return Engine(store, Chance(clock_ms=lambda: now_ms))


def copy(origin: Store, target: Store) -> int:
    """Copy a store without a problem and return how many of the copied threads have no end."""
    report = copy_store(
        DirectoryBackend(origin),
        DirectoryBackend.open(target.root, create=True),
        replace=False,
        progress=lambda _kind, _count: None,
    )
    assert report.problems == []
    return report.unfinished


def marked(store: Store) -> list[ThreadId]:
    return sorted(one for _, one, path in store.find_threads() if copied.is_marked(path))


def shown(store: Store, thread: ThreadId) -> str:
    """Return what `thread` prints."""
    view = engine_of(store).thread(thread)
    lines = thread_lines(view, ending_of(view, store, store.root), full=False)
    return "\n".join(str(piece) for line in lines for piece in line)


@pytest.fixture
def origin(tmp_path: Path) -> Store:
    """A store with a thread that sleeps, one that has ended, and one whose worker died."""
    store = Store.open(tmp_path / "origin")
    bundle = granted(store, NAPPING)
    nap = {"sleep": {"seconds": 1}}
    place_script(store, bundle, script_of(bundle, number=0).intent(1, nap))
    place_script(store, bundle, script_of(bundle, number=1).done(1).end("completed"))
    place_script(store, bundle, script_of(bundle, number=2).done(1))
    return store


@pytest.fixture
def target(origin: Store, tmp_path: Path) -> Store:
    """The copy of that store."""
    store = Store(root=tmp_path / "target")
    assert copy(origin, store) == 2
    return store


def test_a_copied_thread_waits_for_a_person(origin: Store, target: Store) -> None:
    """`due` resumes a copied sleeper nowhere but in its own store, and there is no notification
    of a copied thread; the mark is not copied on.
    """
    for store in (origin, target):
        store.config_path.write_text("notify: {command: ['true'], events: [interrupted]}\n")
    assert (marked(origin), marked(target)) == ([], [ASLEEP, DEAD])
    assert engine_of(origin).sleepers() == [ASLEEP]
    before = {path: path.read_bytes() for _, _, path in target.find_threads()}
    report = due(engine_of(target))
    assert (report.resumed, report.problems) == ((), ())
    assert {path: path.read_bytes() for path in before} == before
    assert "copied from another store" in shown(target, DEAD)
    assert "copied" not in shown(target, ENDED) + shown(origin, DEAD)
    # in its own store, the same look notes the death
    assert engine_of(origin).notify_deaths() == []
    [bundle] = origin.find_bundles()
    assert b'"notified"' in origin.data_path(bundle, DEAD).read_bytes()
    assert copy(target, origin) == 0
    assert marked(origin) == []


def test_lines_of_a_later_copy_mark_the_thread_again(
    origin: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark is there before the first line is written. A thread with nothing new stays this
    store's own, and one that ends has no mark.
    """
    [bundle] = origin.find_bundles()
    for thread in (ASLEEP, DEAD):
        copied.unmark(target.data_path(bundle, thread))
    assert copy(origin, target) == 0 and marked(target) == []
    more_lines(origin, ASLEEP, 1)
    seen: list[bool] = []
    real = JournalFile.append

    def looking(journal: JournalFile, body: bytes, *, flush: bool = False) -> bytes:
        seen.append(copied.is_marked(journal.path))
        return real(journal, body, flush=flush)

    monkeypatch.setattr(JournalFile, "append", looking)
    assert copy(origin, target) == 1 and seen == [True]
    assert marked(target) == [ASLEEP]
    with DirectoryBackend(target).threads.open(bundle, DEAD) as owner:
        with pytest.raises(DamagedError):
            owner.append([chain.seal(bytes(12), b'{"control":"note","timestamp":1')[0]])
        assert marked(target) == [ASLEEP], "nothing was written"
    with DirectoryBackend(origin).threads.open(bundle, ASLEEP) as owner:
        script = Script(bundle=bundle, thread=ASLEEP, digest=owner.head.digest)
        owner.append(script.end("killed").sealed)
    assert copy(origin, target) == 0 and marked(target) == []


def test_a_due_time_does_not_resume_the_thread_that_another_store_started(target: Store) -> None:
    """The thread of a due time that was copied counts as started, and is left as it is."""
    [bundle] = target.find_bundles()
    schedule = add(engine_of(target), "napping", "@yearly", timezone="UTC")
    late = engine_of(target, NOW_MS + 366 * 24 * HOUR_MS)
    due_ms = schedule.next_ms(NOW_MS + HOUR_MS) or 0
    thread = derived_id(f"schedule {schedule.name} {schedule.created_ms}", due_ms)
    script = Script.begun(bundle, thread, name="napping")
    path = place_script(target, target.load_bundle(bundle), script).path
    copied.mark(path)
    report = due(late)
    assert report.problems == () and [run.thread_id for run in report.started] == [thread]
    assert path.read_bytes() == script.data and copied.is_marked(path)


@pytest.mark.slow
def test_a_person_takes_a_copied_thread_up(target: Store) -> None:
    """`resume` removes the mark, and the thread ends here. A removed thread leaves no mark."""
    engine = Engine(target)
    try:
        engine.resume(ASLEEP)
        assert finish(engine, ASLEEP)["message"] == "awake"
    finally:
        assert end_workers(target.root) == []
    assert marked(target) == [DEAD]
    engine.remove_thread(DEAD)
    assert list(target.logs.rglob("*.copied")) == []
