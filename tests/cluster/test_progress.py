"""Notifications of progress: what fits, and what other programs send."""

from __future__ import annotations

import json
from contextlib import closing

from testbed.bundles import thread_id
from testbed.postgres import PostgresServer
from uncaged_cluster.progress import MOST_BYTES, newest_fitting
from uncaged_cluster.store import PostgresStore, open_store
from uncaged_engine.services.shared import Report
from uncaged_engine.services.stores import StoreBackend


def test_the_newest_reports_fit_into_a_notification() -> None:
    """Older ones are left out, and a single one that is too long; the order stays."""
    reports = [{"seq": 1, "number": number, "text": "ü" * 300} for number in range(20)]
    text = newest_fitting(reports)
    assert len(text.encode()) <= MOST_BYTES
    assert [one["number"] for one in json.loads(text)] == [16, 17, 18, 19]
    assert newest_fitting([{"seq": 1, "usage": "x" * MOST_BYTES}]) == "[]"


def test_a_follower_gets_reports_and_nothing_else(
    store: StoreBackend, address: str, postgres: PostgresServer
) -> None:
    """Any user of the database can notify a channel; what is no list of reports is passed over."""
    assert isinstance(store, PostgresStore)
    thread, other = thread_id(1), thread_id(2)
    with closing(open_store(address, create=False, is_visible=True)) as sender:
        assert isinstance(sender, PostgresStore)
        with store.progress.follow(thread) as reports, postgres.connect() as any_user:
            with closing(store._notifications.subscribe("other")) as last:
                last.listen()  # the connection listens to the thread's channel by now
            channel = store._session.channel("progress", thread)
            for payload in ("nonsense", "[" * 7000, '{"seq": 1}', '[1, "x"]'):
                any_user.execute("SELECT pg_notify(%s, %s)", [channel, payload])
            any_user.commit()
            sender.progress.send(
                {other: [{"seq": 1}], thread: [{"seq": 1}, {"seq": 2, "text": "\ud800\x00"}]}
            )
            found: list[Report] = []
            while len(found) < 2:
                found += reports()
    assert found == [{"seq": 1}, {"seq": 2, "text": "\ud800\x00"}]
