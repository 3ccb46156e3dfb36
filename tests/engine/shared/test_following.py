"""Following of a shared store's thread: its lines once each, also past an outage."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from testbed.journals import NOW_MS, Script
from testbed.stored_threads import entry_of, script
from uncaged_bundles.errors import StorageError
from uncaged_bundles.storage.store import Store
from uncaged_engine.door.effects import Cancel
from uncaged_engine.shared import following
from uncaged_engine.shared.dispatch import Report
from uncaged_engine.shared.following import follow_shared
from uncaged_engine.shared.replica import replica
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.stores.directory.threads import DirectoryThreads
from uncaged_engine.stores.protocol import ThreadNotes
from uncaged_engine.threads.starting import Chance


@dataclass
class ScriptedQueue:
    """A queue in which a thread is left after *until* questions. asked: how many there were.
    failing: the questions, from 1 on, that it cannot reply to.
    """

    asked: int = 0
    until: int = 0
    failing: tuple[int, ...] = ()

    def is_left(self) -> bool:
        self.asked += 1
        if self.asked in self.failing:
            raise StorageError("the queue is gone")
        return self.asked > self.until


def followed(
    root: Path,
    found: Script,
    queue: ScriptedQueue,
    *,
    still_waits: Callable[[], None] = lambda: None,
    reports: Callable[[], list[Report]] = list,
) -> list[Any]:
    """Follow a thread of a directory to the end of its stream; return its records."""
    backend = DirectoryBackend(Store.open(root))
    backend.threads.start(entry_of(found), found.sealed, ThreadNotes())
    with replica(backend, Store.open(root), Chance(clock_ms=lambda: NOW_MS)) as copies:
        events = follow_shared(
            copies,
            found.bundle,
            found.thread,
            is_left=queue.is_left,
            still_waits=still_waits,
            reports=reports,
        )
        return [one.body for one in events]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_S", 0.01)


def test_an_ended_thread_is_followed_to_its_end(tmp_path: Path) -> None:
    """The end closes the stream without a question to the queue."""
    queue = ScriptedQueue()
    records = followed(tmp_path, script(steps=2).end("completed", result=None), queue)
    assert [one.get("seq") for one in records] == [None, 1, 1, 2, 2, None]
    assert records[-1]["end"] == "completed"
    assert queue.asked == 0


def test_a_thread_that_no_worker_has_is_left(tmp_path: Path) -> None:
    """Without an end, the stream closes once no worker has it, as the queue says."""
    queue, found = ScriptedQueue(), script(steps=2)
    assert len(followed(tmp_path, found, queue)) == len(found.sealed)
    assert queue.asked == 1


def test_a_follower_is_told_once_that_nothing_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its patience with the start record alone; not while effects of the thread go on."""
    monkeypatch.setattr(following, "PATIENCE_S", 0.0)
    told: list[str] = []
    for name, steps in (("waits", 0), ("goes-on", 2)):
        queue = ScriptedQueue(until=3)
        found = script(steps=steps)
        followed(tmp_path / name, found, queue, still_waits=partial(told.append, name))
        assert queue.asked == 4
    assert told == ["waits"]


def test_progress_of_an_ended_step_is_not_shown(tmp_path: Path) -> None:
    """A report may arrive behind the end of its effect; those of the effect in flight are shown."""
    sent: list[Report] = [{"seq": 1, "text": "late"}, {"seq": 2, "text": "now"}, {"seq": "2"}]

    def reports() -> list[Report]:
        return [sent.pop(0)] if sent else []

    found = script(steps=1).intent(2)
    records = followed(tmp_path, found, ScriptedQueue(until=4), reports=reports)
    assert records[-1] == {"seq": 2, "text": "now"} and not sent
    assert len(records) == len(found.sealed) + 1


def test_an_outage_repeats_and_loses_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream goes on behind the last line; an outage that lasts is the follower's error."""
    follow = DirectoryThreads.follow
    calls: list[int] = []

    def failing(
        self: DirectoryThreads, bundle: Any, thread: Any, *, from_line: int = 0, timeout_s: float
    ) -> Generator[list[bytes]]:
        calls.append(from_line)
        for lines in follow(self, bundle, thread, from_line=from_line, timeout_s=timeout_s):
            yield lines[:2]
            raise StorageError("the database is gone")

    monkeypatch.setattr(DirectoryThreads, "follow", failing)
    found = script(steps=2).end("completed", result=None)
    assert len(followed(tmp_path / "a", found, ScriptedQueue())) == len(found.sealed)
    assert calls == [0, 2, 4]
    monkeypatch.setattr(following, "OUTAGE_S", 0)
    with pytest.raises(StorageError, match="the database is gone"):
        followed(tmp_path / "b", script(steps=2), ScriptedQueue())


def test_an_outage_that_the_store_overcame_is_no_part_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each outage has its own time, also if no line came between two of them."""
    monkeypatch.setattr(following, "OUTAGE_S", 0)
    queue = ScriptedQueue(until=6, failing=(2, 5))
    found = script(steps=1)
    assert len(followed(tmp_path, found, queue)) == len(found.sealed)
    assert queue.asked == 7
    with pytest.raises(StorageError, match="the queue is gone"):
        followed(tmp_path / "b", found, ScriptedQueue(until=6, failing=(2, 3)))


def test_an_end_that_was_resumed_is_followed_past(tmp_path: Path) -> None:
    """A killed thread that a person resumed goes on behind its end."""
    queue = ScriptedQueue()
    found = script(steps=1).end("killed").control("resume").end("completed", result=None)
    assert len(followed(tmp_path, found, queue)) == len(found.sealed)
    assert queue.asked == 0


def test_a_follower_that_is_cancelled_leaves(tmp_path: Path) -> None:
    """A waiting follower ends at the next look."""
    cancel, found = Cancel(), script(steps=1)
    queue = ScriptedQueue(until=1_000_000)
    backend = DirectoryBackend(Store.open(tmp_path))
    backend.threads.start(entry_of(found), found.sealed, ThreadNotes())
    with replica(backend, Store.open(tmp_path), Chance(clock_ms=lambda: NOW_MS)) as copies:
        place = found.bundle, found.thread
        stream = follow_shared(
            copies,
            *place,
            is_left=queue.is_left,
            still_waits=lambda: None,
            reports=list,
            cancel=cancel,
        )
        seen = [next(stream) for _ in found.sealed]
        cancel.request()
        assert list(stream) == []
    assert len(seen) == len(found.sealed)
