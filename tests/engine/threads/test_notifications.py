"""Notifications: which threads a person may not know of, and the file of those that were seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from uncaged_bundles.errors import DamagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.state.observe import ThreadSummary
from uncaged_engine.threads.notifications import (
    FIRST_MS,
    SeenThreads,
    mark_all_seen,
    mark_seen,
    notifications,
    read_seen,
)

NOW = 100 * FIRST_MS
DONE = ThreadSummary(
    thread_id=ThreadId("01M82J9WE6QAY06TPXNPSG00DT"),
    hash=BundleHash("7B4GPYARXMCSB"),
    name="flow",
    status="completed",
    steps=1,
    started_ms=NOW - 9,
    updated_ms=NOW - 5,
    message="",
)
NEVER = SeenThreads(since_ms=0, threads={})


def test_what_a_person_did_or_saw_is_not_listed() -> None:
    """Listed are threads that stopped by themselves or wait, the last change first; a thread that
    waits is listed though it was followed, until the list is cleared.
    """
    threads = [
        DONE,
        replace(DONE, thread_id=ThreadId("W"), status="waiting", updated_ms=NOW - 3),
        *(replace(DONE, thread_id=ThreadId(one), status="killed") for one in ("K", "L")),
        replace(DONE, thread_id=ThreadId("R"), status="running"),
        replace(DONE, thread_id=ThreadId("P"), status="paused"),
        replace(DONE, thread_id=ThreadId("C"), status="failed"),
    ]
    listed = [one.thread_id for one in notifications(threads, {"C"}, NEVER)]
    assert listed == ["W", DONE.thread_id]
    seen = SeenThreads(since_ms=0, threads={DONE.thread_id: NOW - 5, "W": NOW - 3})
    assert [one.thread_id for one in notifications(threads, {"C"}, seen)] == ["W"]
    changed = [replace(DONE, updated_ms=NOW - 4)]
    assert notifications(changed, set(), seen) == changed
    assert notifications(threads, set(), SeenThreads(since_ms=NOW - 3, threads={})) == []


def test_what_was_seen_is_kept(store: Store) -> None:
    """Without a file the list has a day; lines that are torn hide no other; clearing drops them."""
    assert read_seen(store, NOW) == SeenThreads(since_ms=NOW - FIRST_MS, threads={})
    mark_seen(store, DONE.thread_id, NOW - 5)
    path = store.root / "notifications.jsonl"
    with path.open("ab") as file:
        file.write(b'{"threadId": "torn')
    mark_seen(store, ThreadId("W"), NOW)
    assert read_seen(store, NOW).threads == {DONE.thread_id: NOW - 5, "W": NOW}
    assert path.stat().st_mode & 0o077 == 0
    mark_all_seen(store, NOW)
    assert read_seen(store, NOW) == SeenThreads(since_ms=NOW, threads={})


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (b'{"format": 2}\n', "newer version"),
        (b"", "damaged"),
        (b"\x00\xff\n", "damaged"),
        (b"[" * 100_000, "damaged"),
        (b'{"format": 1, "sinceMs": "x"}\n', "damaged"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_as_it_is(
    store: Store, first: bytes, problem: str
) -> None:
    """A newer version's file and a damaged one are refused, also by clearing."""
    path = store.root / "notifications.jsonl"
    path.write_bytes(first)
    for refused in (lambda: read_seen(store, NOW), lambda: mark_all_seen(store, NOW)):
        with pytest.raises(DamagedError, match=problem):
            refused()
    assert path.read_bytes() == first


def test_a_store_that_cannot_be_written_is_no_error(store: Store, tmp_path: Path) -> None:
    """Following a thread goes on where its mark cannot be kept."""
    (store.root / "notifications.jsonl").mkdir()
    mark_seen(store, DONE.thread_id, NOW)
    gone = Store.open(tmp_path / "other")
    gone.root.rename(tmp_path / "moved")
    mark_seen(gone, DONE.thread_id, NOW)
