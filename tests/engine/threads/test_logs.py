"""Readers of debug logs."""

from __future__ import annotations

import os

from testbed.bundles import COUNT, Placed, place
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import lock
from uncaged_engine.journal.infolog import InfoLog
from uncaged_engine.threads.logs import StoreLog, ThreadLog


def log_of(store: Store, placed: Placed, *contents: str, at_ms: int = 0) -> None:
    """Write lines, one millisecond apart."""
    times = iter(range(at_ms, at_ms + len(contents)))
    log = InfoLog(store.info_path(placed.bundle.hash, placed.thread), lambda: next(times))
    for content in contents:
        log.note("TAG", content)


def test_a_log_is_read_as_it_grows(store: Store) -> None:
    """Each call returns the new whole lines; a log that is missing has none."""
    placed = place(store, COUNT)
    log = ThreadLog(store, placed.bundle.hash, placed.thread)
    assert log.new_lines() == []
    log_of(store, placed, "one", "two")
    assert [line.content for line in log.new_lines()] == ["one", "two"]
    assert log.new_lines() == []
    path = store.info_path(placed.bundle.hash, placed.thread)
    with path.open("ab") as file:
        file.write(b'no JSON\n{"tag":"T","content":"three","time')
        file.flush()
        assert log.new_lines() == []
        file.write(b'stamp":3}\n')
    [line] = log.new_lines()
    assert (line.content, line.timestamp_ms, line.thread_id) == ("three", 3, placed.thread)


def test_a_log_that_was_cut_or_replaced_is_read_again(store: Store) -> None:
    """A shorter file, or another one under its name, is read from its beginning."""
    placed = place(store, COUNT)
    path = store.info_path(placed.bundle.hash, placed.thread)
    log = ThreadLog(store, placed.bundle.hash, placed.thread)
    log_of(store, placed, "before", "the cut")
    assert len(log.new_lines()) == 2
    os.truncate(path, 0)
    log_of(store, placed, "cut")
    assert [line.content for line in log.new_lines()] == ["cut"]
    path.rename(path.with_suffix(".old"))
    log_of(store, placed, "another file")
    assert [line.content for line in log.new_lines()] == ["another file"]


def test_all_logs_are_read_in_the_order_of_time(store: Store) -> None:
    """The last lines of the threads that were taken up last; a thread is followed while its
    journal is locked, and again when it is taken up again.
    """
    early, late, next_one = (place(store, COUNT, number=number) for number in range(3))
    log_of(store, early, "early 1", "early 2", at_ms=10)
    log_of(store, late, "late", at_ms=11)
    for placed in (early, late):
        store.note_taken_up(placed.bundle.hash, placed.thread)
    assert [line.content for line in StoreLog(store, 20).recent_lines(9)] == [
        "early 1",
        "early 2",
        "late",
    ]
    assert StoreLog(store, 20).recent_lines(0) == []
    log = StoreLog(store, 20)
    assert [line.content for line in log.recent_lines(1)] == ["late"]
    log_of(store, late, "written by no worker", at_ms=20)
    log_of(store, next_one, "long ago", at_ms=12)
    assert log.new_lines() == []
    handle = os.open(next_one.path, os.O_RDWR)
    try:
        assert lock.take(handle)
        store.note_taken_up(next_one.bundle.hash, next_one.thread)
        log_of(store, next_one, "taken up", at_ms=21)
        assert [line.content for line in log.new_lines()] == ["taken up"]
        log_of(store, next_one, "goes on", at_ms=22)
        assert [line.content for line in log.new_lines()] == ["goes on"]
        log_of(store, next_one, "left", at_ms=23)
    finally:
        os.close(handle)
    assert [line.content for line in log.new_lines()] == ["left"]
    store.note_taken_up(late.bundle.hash, late.thread)
    log_of(store, late, "taken up again", at_ms=24)
    assert [line.content for line in log.new_lines()] == ["written by no worker", "taken up again"]
    assert log.new_lines() == []
