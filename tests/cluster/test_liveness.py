"""Liveness of workers: sessions that live, that have ended, and that are frozen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from testbed.postgres import PostgresServer
from testbed.stored_threads import SOURCE, script, started
from uncaged_bundles.errors import StorageError
from uncaged_cluster.address import parse_address
from uncaged_cluster.liveness import dead_workers, worker_name
from uncaged_cluster.session import DatabaseSession
from uncaged_cluster.store import PostgresStore, open_store
from uncaged_engine.services.stores import FenceRaised, JournalBusy


@pytest.fixture
def sessions(postgres: PostgresServer) -> Iterator[list[DatabaseSession]]:
    """A worker's session, another worker's, and one that watches them."""
    address = postgres.address(postgres.new_schema())
    with ExitStack() as stack:
        stack.enter_context(closing(open_store(address, create=True, is_visible=True)))
        parsed = parse_address(address, is_visible=True)
        yield [stack.enter_context(closing(DatabaseSession(parsed))) for _ in range(3)]


def test_a_worker_dies_with_its_session(sessions: list[DatabaseSession]) -> None:
    """Its name says which one; a name without a session's number is that of none."""
    worker, _, watching = sessions
    name = worker_name(worker)
    assert dead_workers(watching, [name, "setup"]) == {"setup"}
    worker.close()
    while dead_workers(watching, [name]) != {name}:
        pass  # the server notices that the client has gone


def test_two_who_ask_at_once_both_see_a_death(sessions: list[DatabaseSession]) -> None:
    """A question about a session does not hold the lock that it asks for."""
    worker, other, watching = sessions
    number = worker.number()
    worker.close()
    while dead_workers(watching, [f"w#{number}"]) == set():
        pass  # the server notices that the client has gone
    with watching.transaction(), other.transaction():
        assert not watching.lives(number)
        assert not other.lives(number)


def test_a_frozen_owner_is_ended_and_appends_no_more(sessions: list[DatabaseSession]) -> None:
    """Once its session was idle for too long, another worker takes its thread over; when it wakes,
    its append fails on the fence, also over a new connection.
    """
    frozen, other, watching = sessions
    store, taking = PostgresStore(frozen), PostgresStore(other)
    store.bundles.put(SOURCE)
    thread = started(store)
    name, more = worker_name(frozen), script(steps=3).sealed[len(thread.sealed) :]
    owner = store.threads.open(thread.bundle, thread.thread)
    assert dead_workers(watching, [name], frozen_s=3600) == set()
    with pytest.raises(JournalBusy):
        taking.threads.open(thread.bundle, thread.thread)
    assert dead_workers(watching, [name], frozen_s=0) == set()
    while dead_workers(watching, [name]) == set():
        pass  # the server ends the session
    with taking.threads.open(thread.bundle, thread.thread) as taken:
        taken.append(more)
        # the first statement finds the connection closed, the second goes over a new one
        with pytest.raises(StorageError, match=r"the server ended|the connection was lost"):
            frozen.query("SELECT 1")
        with pytest.raises(FenceRaised):
            owner.append(more)
    assert taking.threads.head(thread.bundle, thread.thread).lines == len(thread.sealed) + 2
