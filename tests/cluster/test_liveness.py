"""Liveness of workers: sessions that live, that have ended, and that are frozen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest
from psycopg import sql
from testbed.postgres import PostgresServer
from testbed.stored_threads import SOURCE, script, started
from uncaged_bundles.errors import StorageError
from uncaged_cluster.address import parse_address
from uncaged_cluster.admitting import TurnRows
from uncaged_cluster.liveness import dead_workers, worker_name
from uncaged_cluster.session import DatabaseSession
from uncaged_cluster.store import PostgresStore, open_store
from uncaged_cluster.turns import SETUP_LOCK
from uncaged_engine.journal.chain import seal
from uncaged_engine.services.stores import (
    FenceRaised,
    JournalBusy,
    LineOwner,
    StoreLacks,
    conversation_seed,
)


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
    assert dead_workers(watching, [name, "setup"], silent_s=60) == {"setup"}
    worker.close()
    while dead_workers(watching, [name], silent_s=60) != {name}:
        pass  # the server notices that the client has gone


def test_an_owner_goes_on_in_a_new_session_under_its_number(
    sessions: list[DatabaseSession],
) -> None:
    """After a loss that no append met, the first append states the new session: others find the
    owner alive.
    """
    worker, other, watching = sessions
    store, waiting = PostgresStore(worker), PostgresStore(other)
    store.bundles.put(SOURCE)
    thread = started(store)
    more = script(steps=3).sealed[len(thread.sealed) :]
    owner = store.threads.open(thread.bundle, thread.thread)
    former = worker.number()
    [(process,)] = worker.query("SELECT pg_backend_pid()")
    watching.query("SELECT pg_terminate_backend(%s, 30000)", [process])
    with pytest.raises(StorageError):
        worker.query("SELECT 1")
    owner.append(more)
    assert worker.number() != former
    with pytest.raises(JournalBusy, match=f"session {worker.number()}"):
        waiting.threads.open(thread.bundle, thread.thread)


def test_of_two_owners_at_once_the_second_is_refused(sessions: list[DatabaseSession]) -> None:
    """An opening waits for another one that has not been committed, and sees its owner."""
    first, second, watching = sessions
    store, waiting = PostgresStore(first), PostgresStore(second)
    store.bundles.put(SOURCE)
    thread = started(store)
    line, _ = seal(conversation_seed(thread.thread), b'{"request":"x"')
    store.conversations.start(thread.thread, [line])
    openings: list[Callable[[PostgresStore], LineOwner]] = [
        lambda store: store.threads.open(thread.bundle, thread.thread),
        lambda store: store.conversations.open(thread.thread),
    ]
    for open_log in openings:
        with ThreadPoolExecutor() as pool:
            with first.transaction():
                open_log(store)
                late = pool.submit(open_log, waiting)
                while watching.query("SELECT 1 FROM pg_locks WHERE NOT granted") == []:
                    assert not late.done()
            with pytest.raises(JournalBusy):
                late.result()


def test_a_long_statement_is_not_frozen(sessions: list[DatabaseSession]) -> None:
    """A worker that waits for the database has no idle session."""
    worker, other, watching = sessions
    name = worker_name(worker)
    take, give = "SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)"
    other.query(take)
    with ThreadPoolExecutor() as pool:
        late = pool.submit(worker.query, take)
        while watching.query("SELECT 1 FROM pg_locks WHERE NOT granted") == []:
            assert not late.done()
        assert dead_workers(watching, [name], silent_s=0) == set()
        other.query(give)
        late.result()


def test_two_who_ask_at_once_both_see_a_death(sessions: list[DatabaseSession]) -> None:
    """A question about a session does not hold the lock that it asks for."""
    worker, other, watching = sessions
    number = worker.number()
    worker.close()
    while dead_workers(watching, [f"w#{number}"], silent_s=60) == set():
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
    assert dead_workers(watching, [name], silent_s=3600) == set()
    with pytest.raises(JournalBusy):
        taking.threads.open(thread.bundle, thread.thread)
    assert dead_workers(watching, [name], silent_s=0) == set()
    while dead_workers(watching, [name], silent_s=60) == set():
        pass  # the server ends the session
    with taking.threads.open(thread.bundle, thread.thread) as taken:
        taken.append(more)
        # the first statement finds the connection closed, the second goes over a new one
        with pytest.raises(StorageError, match=r"the server ended|the connection was lost"):
            frozen.query("SELECT 1")
        with pytest.raises(FenceRaised):
            owner.append(more)
    assert taking.threads.head(thread.bundle, thread.thread).lines == len(thread.sealed) + 2


def test_a_client_that_holds_a_lock_stops_its_row_alone(sessions: list[DatabaseSession]) -> None:
    """An append that waits for a row has written nothing, and its owner appends once the row is
    free. A worker that is frozen inside a transaction, or reads no more, counts as silent.
    """
    worker, holder, watching = sessions
    store = PostgresStore(worker)
    store.bundles.put(SOURCE)
    thread = started(store)
    more = script(steps=3).sealed[len(thread.sealed) :]
    owner = store.threads.open(thread.bundle, thread.thread)
    worker.query("SET lock_timeout = '50ms'")
    with holder.transaction():
        holder.query("SELECT 1 FROM threads FOR UPDATE")
        with pytest.raises(StoreLacks, match="holds a lock"):
            owner.append(more)
        name = worker_name(holder)
        assert dead_workers(watching, [name], silent_s=0) == set()
        while dead_workers(watching, [name], silent_s=3600) == set():
            pass  # the server ends the session
        assert owner.append(more).lines == len(thread.sealed) + len(more)
        with pytest.raises(StorageError):
            holder.query("SELECT 1")


@pytest.mark.slow
def test_a_client_that_freezes_while_it_sets_up_the_dispatcher_is_ended(
    sessions: list[DatabaseSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock is no part of a transaction, and would keep all workers from their start. Another
    client, which would wait for two minutes, ends the silent session and goes on.
    """
    from uncaged_cluster.runners import dbos_turns  # 0.5 s

    holder, other, watching = sessions
    holder.query("SELECT pg_advisory_lock(%s)", [holder.lock_key(SETUP_LOCK)])
    with closing(dbos_turns.DbosRunner(other, other)) as runner:
        monkeypatch.setattr(dbos_turns, "SETUP_S", 0.5)
        with pytest.raises(StorageError, match="sets up DBOS for too long"):
            runner.forget(0, lambda _count: None)
        monkeypatch.setattr(dbos_turns, "SETUP_S", 120.0)
        monkeypatch.setattr(dbos_turns, "SETUP_SILENT_S", 0.5)
        runner.forget(0, lambda _count: None)
    with pytest.raises(StorageError):
        holder.query("SELECT 1")
    assert watching.query("SELECT 1") == [(1,)]


def test_a_client_that_freezes_while_it_moves_turns_is_ended(
    sessions: list[DatabaseSession],
) -> None:
    """The server ends its transaction after a minute (here 0.2 s), and others move turns again."""
    holder, other, _ = sessions
    turns = [TurnRows(session, sql.Identifier("unused")) for session in (holder, other)]
    holder.query("SET idle_in_transaction_session_timeout = '200ms'")
    with pytest.raises(StorageError, match="the server ended the connection"), turns[0].alone():
        with turns[1].alone() as alone:
            assert not alone
        while not alone:
            with turns[1].alone() as alone:
                pass
        holder.query("SELECT 1")
