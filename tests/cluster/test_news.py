"""News of turns: what ends a worker's wait, and how often DBOS is to look."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest
from uncaged_cluster import news
from uncaged_cluster.address import parse_address
from uncaged_cluster.news import OFTEN_S, SELDOM_S, PollingPace, TurnNews
from uncaged_cluster.notifications import Notifications
from uncaged_cluster.session import DatabaseSession
from uncaged_engine.services.stores import StoreBackend

FOR_EVER_S = 3600.0


def test_a_worker_looks_when_it_is_told(
    address: str, store: StoreBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a turn that another process submitted, and of its own free slot; without news it would
    look in an hour.
    """
    assert store
    monkeypatch.setattr(news, "LOOK_S", FOR_EVER_S)
    parsed = parse_address(address, is_visible=True)
    with closing(DatabaseSession(parsed)) as worker, closing(DatabaseSession(parsed)) as starter:
        notifications = Notifications(parsed)
        waiting = TurnNews(worker, notifications).follow()
        told = threading.Thread(target=TurnNews(starter, Notifications(parsed)).tell)
        with closing(notifications.subscribe("other")) as other:
            other.listen()  # the connection listens to the channel of turns by now
        told.start()
        waiting.wait(0.0, again=False)
        told.join()
        waiting.note_room()
        waiting.wait(time.monotonic() + FOR_EVER_S, again=False)  # it looked just now
        waiting.wait(0.0, again=True)  # another worker took turns


def test_many_notifications_are_one_look(
    address: str, store: StoreBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reaches all workers: a worker without a free slot looks once in a while for all."""
    assert store
    monkeypatch.setattr(news, "LEAST_S", 0.5)
    parsed = parse_address(address, is_visible=True)
    with closing(DatabaseSession(parsed)) as session:
        waiting = TurnNews(session, Notifications(parsed)).follow()
        for _ in range(2):
            looked_s = time.monotonic()
            TurnNews(session, Notifications(parsed)).tell()
            waiting.wait(looked_s, again=False)
            assert time.monotonic() - looked_s >= 0.5


def test_dbos_looks_often_only_while_threads_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval is written when it changes, and not at each look."""
    written: list[float] = []
    pace = PollingPace(written.append)
    for took in (False, True, True, False):
        pace.note(took=took)
    assert written == [OFTEN_S]
    monkeypatch.setattr(news, "OFTEN_FOR_S", -1.0)
    pace.note(took=True)
    pace.note(took=False)
    pace.note(took=False)
    assert written == [OFTEN_S, SELDOM_S]
