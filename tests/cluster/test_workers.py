"""Rows of workers: what each takes, and the agents that work in all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest
from uncaged_cluster.address import parse_address
from uncaged_cluster.session import DatabaseSession
from uncaged_cluster.workers import PROTOCOL, WorkerAgents, WorkerRows
from uncaged_engine.services.shared import QueueSettings, WorkerOffer
from uncaged_engine.services.stores import StoreBackend

OFFER = WorkerOffer(slots=2, offers=frozenset({"gpu"}), flows=frozenset({"a"}))
MOST = 3


@pytest.fixture
def sessions(address: str, store: StoreBackend) -> Iterator[list[DatabaseSession]]:
    """Sessions of two workers."""
    assert store
    with ExitStack() as stack:
        parsed = parse_address(address, is_visible=True)
        yield [stack.enter_context(closing(DatabaseSession(parsed))) for _ in range(2)]


def test_agents_of_all_workers_are_limited(sessions: list[DatabaseSession]) -> None:
    """Attempts at the same time get as many permits as there are; those of a dead worker end with
    its row.
    """
    workers = [WorkerRows(session) for session in sessions]
    numbers = [rows.announce(OFFER, PROTOCOL) for rows in workers]
    settings = QueueSettings(agents=MOST)
    permits = [WorkerAgents(rows, lambda: settings) for rows in workers]
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda number: permits[number % 2].try_take(), range(12)))
    assert taken.count(True) == MOST
    mine = sum(taken[0::2])
    workers[1].remove([numbers[1]])
    assert [permits[0].try_take() for _ in range(4)] == [n < MOST - mine for n in range(4)]
    permits[0].release()
    assert permits[0].try_take()
    assert WorkerAgents(workers[0], QueueSettings).try_take()


def test_the_rows_tell_who_lives_and_who_drains(sessions: list[DatabaseSession]) -> None:
    """Of this version; a dead one is not told to drain."""
    first, second = (WorkerRows(session) for session in sessions)
    number = first.announce(OFFER, PROTOCOL)
    second.announce(WorkerOffer(slots=1), "another-version")
    [living] = first.living(PROTOCOL)
    assert (living.offer, living.drains, living.threads) == (OFFER, False, 0)
    assert not first.is_to_drain(number)
    sessions[1].close()
    while first.living("another-version"):  # the server ends a session soon after its client
        time.sleep(0.01)
    assert first.drain(None) == [living.name]
    assert first.is_to_drain(number)
    assert first.living(PROTOCOL)[0].drains
