"""Following of a shared store's thread: its lines once each, also past an outage."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from testbed.journals import NOW_MS, Script
from testbed.stored_threads import entry_of, script
from uncaged_bundles.errors import StorageError
from uncaged_bundles.storage.store import Store
from uncaged_engine.shared import following
from uncaged_engine.shared.following import follow_shared
from uncaged_engine.shared.replica import replica
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.stores.directory.threads import DirectoryThreads
from uncaged_engine.stores.protocol import ThreadNotes
from uncaged_engine.threads.starting import Chance


@dataclass
class ScriptedDispatcher:
    """A dispatcher that leaves each thread after *pending* questions. asked: the threads that it
    was asked about. failing: the questions, from 1 on, that it cannot reply to.
    """

    asked: list[str] = field(default_factory=list)
    pending: int = 0
    failing: tuple[int, ...] = ()

    def is_pending(self, thread: str) -> bool:
        self.asked.append(thread)
        if len(self.asked) in self.failing:
            raise StorageError("the dispatcher is gone")
        return len(self.asked) <= self.pending


def followed(
    root: Path, found: Script, dispatcher: Any, *, still_waits: Callable[[], None] = lambda: None
) -> list[Any]:
    """Follow a thread of a directory to the end of its stream; return its records."""
    backend = DirectoryBackend(Store.open(root))
    backend.threads.start(entry_of(found), found.sealed, ThreadNotes())
    with replica(backend, Store.open(root), Chance(clock_ms=lambda: NOW_MS)) as copies:
        events = follow_shared(
            copies, dispatcher, found.bundle, found.thread, still_waits=still_waits
        )
        return [one.body for one in events]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_S", 0.01)


def test_an_ended_thread_is_followed_to_its_end(tmp_path: Path) -> None:
    """The end closes the stream without a question to the dispatcher."""
    dispatcher = ScriptedDispatcher()
    records = followed(tmp_path, script(steps=2).end("completed", result=None), dispatcher)
    assert [one.get("seq") for one in records] == [None, 1, 1, 2, 2, None]
    assert records[-1]["end"] == "completed"
    assert dispatcher.asked == []


def test_a_thread_that_no_worker_has_is_left(tmp_path: Path) -> None:
    """Without an end, the stream closes once the dispatcher has no worker for it."""
    dispatcher, found = ScriptedDispatcher(), script(steps=2)
    assert len(followed(tmp_path, found, dispatcher)) == len(found.sealed)
    assert dispatcher.asked == [found.thread]


def test_a_follower_is_told_once_that_nothing_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its patience with the start record alone; not while effects of the thread go on."""
    monkeypatch.setattr(following, "PATIENCE_S", 0.0)
    told: list[str] = []
    for name, steps in (("waits", 0), ("goes-on", 2)):
        dispatcher = ScriptedDispatcher(pending=3)
        found = script(steps=steps)
        followed(tmp_path / name, found, dispatcher, still_waits=partial(told.append, name))
        assert len(dispatcher.asked) == 4
    assert told == ["waits"]


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
    assert len(followed(tmp_path / "a", found, ScriptedDispatcher())) == len(found.sealed)
    assert calls == [0, 2, 4]
    monkeypatch.setattr(following, "OUTAGE_S", 0)
    with pytest.raises(StorageError, match="the database is gone"):
        followed(tmp_path / "b", script(steps=2), ScriptedDispatcher())


def test_an_outage_that_the_store_overcame_is_no_part_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each outage has its own time, also if no line came between two of them."""
    monkeypatch.setattr(following, "OUTAGE_S", 0)
    dispatcher = ScriptedDispatcher(pending=6, failing=(2, 5))
    found = script(steps=1)
    assert len(followed(tmp_path, found, dispatcher)) == len(found.sealed)
    assert len(dispatcher.asked) == 7
    with pytest.raises(StorageError, match="the dispatcher is gone"):
        followed(tmp_path / "b", found, ScriptedDispatcher(pending=6, failing=(2, 3)))
