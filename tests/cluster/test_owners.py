"""Owners of threads in PostgreSQL: fences, deaths of clients, and lost connections."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from testbed.foreground import at_window, environment
from testbed.stored_threads import started
from testbed.windows import window
from uncaged_bundles.errors import StorageError
from uncaged_bundles.ids import BundleHash
from uncaged_cluster import session
from uncaged_cluster.address import parse_address
from uncaged_cluster.logs import LogHead, LogTables
from uncaged_cluster.session import DatabaseSession
from uncaged_cluster.store import open_store
from uncaged_engine.services.stores import (
    FenceRaised,
    JournalBusy,
    StoreBackend,
)

from .conftest import Rows

UNCOMMITTED = "the lines are sent and not committed; the thread is not there"


@contextmanager
def client(address: str, deed: str, *python: str) -> Iterator[subprocess.Popen[str]]:
    """Run a client; it is killed at the end."""
    words = [sys.executable, *(python or ("-m", "testbed.cluster_client")), address, deed]
    with subprocess.Popen(
        words, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_fence_keeps_a_former_owner_out(address: str, store: StoreBackend) -> None:
    """A second owner is refused unless it takes over; then nothing of the first one is appended,
    now and later.
    """
    found = started(store)
    found.intent(3).step(3)
    with closing(open_store(address, create=False, is_visible=True)) as other:
        first = store.threads.open(found.bundle, found.thread)
        with pytest.raises(JournalBusy):
            other.threads.open(found.bundle, found.thread)
        second = other.threads.open(found.bundle, found.thread, take_over=True)
        assert second.fence > first.fence
        with pytest.raises(FenceRaised, match=found.thread):
            first.append(found.sealed[5:])
        second.append(found.sealed[5:])
        first.close()
        with pytest.raises(JournalBusy):
            store.threads.open(found.bundle, found.thread)  # the second one's
        assert store.threads.read(found.bundle, found.thread) == found.sealed
        second.close()
    with store.threads.open(found.bundle, found.thread) as third:
        assert third.fence > second.fence


def test_a_take_over_during_an_opening_is_no_damage(
    address: str, store: StoreBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of another owner, which came while the first one read, are not taken for changed
    rows.
    """
    found = started(store)
    found.intent(3)
    verify = LogTables.verify
    with closing(open_store(address, create=False, is_visible=True)) as other:

        def late(tables: LogTables, log: LogHead) -> bytes:
            monkeypatch.undo()
            owner = other.threads.open(found.bundle, found.thread, take_over=True)
            owner.append(found.sealed[5:])
            return verify(tables, log)

        monkeypatch.setattr(LogTables, "verify", late)
        with pytest.raises(JournalBusy, match="taken over"):
            store.threads.open(found.bundle, found.thread)
    assert store.threads.read(found.bundle, found.thread) == found.sealed


def test_an_interrupted_opening_leaves_no_owner(
    address: str, store: StoreBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the lines are checked gives the thread up, also in a process that lives on."""
    found = started(store)

    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LogTables, "verify", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.threads.open(found.bundle, found.thread)
    with closing(open_store(address, create=False, is_visible=True)) as other:
        other.threads.open(found.bundle, found.thread).close()


@pytest.mark.slow
def test_a_killed_clients_locks_end_with_its_session(address: str, store: StoreBackend) -> None:
    """The thread of a living client has an owner; after its death it has none."""
    found = started(store)
    with client(address, "open") as process:
        assert process.stdout is not None and process.stdout.readline() == "done\n"
        with pytest.raises(JournalBusy):
            store.threads.open(found.bundle, found.thread)
        process.kill()
        process.wait()
        # the server notices the end of the connection by itself
        assert wait_for_owner(store, found.bundle, found.thread) == 2


def wait_for_owner(store: StoreBackend, bundle: BundleHash, thread: Any) -> int:
    """Own the thread as soon as it is free; return the fence."""
    while True:
        try:
            with store.threads.open(bundle, thread) as owner:
                return owner.fence
        except JournalBusy:
            continue


@pytest.mark.slow
def test_a_client_that_dies_in_a_start_leaves_no_thread(
    address: str, store: StoreBackend, rows: Rows
) -> None:
    """Nothing of a thread whose start was not committed is there, and it can be started anew."""
    python = at_window(window(UNCOMMITTED), "testbed.cluster_client")
    with client(address, "start", *python) as process:
        assert process.wait() == -9
    started(store)
    assert len(store.threads.page(limit=10)) == 1
    assert rows.execute("SELECT count(*) FROM thread_lines").fetchone() == (5,)


def test_an_append_through_a_lost_connection_is_refused(store: StoreBackend, rows: Rows) -> None:
    """The owner cannot know whether its lines are there, and appends no more; the next owner, on a
    new connection, finds the lines of the database.
    """
    found = started(store)
    found.intent(3).step(3)
    owner = store.threads.open(found.bundle, found.thread)
    rows.execute(
        "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
        " WHERE starts_with(application_name, 'uncaged-workflow ') AND pid IN"
        " (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
    )
    for _ in range(2):
        with pytest.raises(StorageError):
            owner.append(found.sealed[5:])
    owner.close()
    with store.threads.open(found.bundle, found.thread) as second:
        assert second.fence > owner.fence
        second.append(found.sealed[second.head.lines :])
    assert store.threads.read(found.bundle, found.thread) == found.sealed


def test_a_server_that_does_not_answer_is_given_up(
    address: str, store: StoreBackend, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is closed, since a late answer would be that of another statement; the next
    statement has a new one.
    """
    assert store.blobs.put(b"x")
    shared = DatabaseSession(parse_address(address, is_visible=True))
    with closing(shared), monkeypatch.context() as patch:
        patch.setattr(session, "ANSWER_TIMEOUT_S", 0.05)
        with (
            pytest.raises(StorageError, match="timeout"),
            shared.transaction(),
        ):
            shared.query("SELECT pg_sleep(600)")
        patch.undo()
        assert shared.query("SELECT count(*) FROM blobs") == [(1,)]
    # the server does not notice that the client is gone: an index of another test would wait for it
    rows.execute(
        "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
        " WHERE query = 'SELECT pg_sleep(600)'"
    )


def test_a_follower_goes_on_after_a_lost_connection(store: StoreBackend, rows: Rows) -> None:
    """Lines that came meanwhile are caught up."""
    found = started(store)
    with closing(store.threads.follow(found.bundle, found.thread, timeout_s=0.01)) as feed:
        assert next(feed) == found.sealed
        assert next(feed) == []
        rows.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        )
        assert next(feed) == []  # a loss while it waits
        rows.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        )
        found.intent(3)
        with store.threads.open(found.bundle, found.thread) as owner:
            owner.append(found.sealed[5:])
        seen: list[bytes] = []
        while not seen:
            seen += next(feed)
        assert seen == found.sealed[5:]
