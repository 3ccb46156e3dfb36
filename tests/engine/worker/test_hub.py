"""Followers of a thread hear of everything that reaches the disk."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping

from uncaged_bundles.ids import ThreadId
from uncaged_engine.worker.hub import Hub

THREAD = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS")
BLOCKED_S = 0.1


def heard(connection: socket.socket) -> list[Mapping[str, object]]:
    """All events of a connection that was hung up."""
    with connection, connection.makefile("rb") as lines:
        return [json.loads(line) for line in lines]


def test_what_happens_while_a_follower_comes_is_not_lost() -> None:
    """A flush between the look at the journal and the first word to the follower is the last one for a long time, perhaps."""
    hub = Hub()
    ours, theirs = socket.socketpair()
    flusher = threading.Thread(target=hub.publish, args=(THREAD, {"flushed": 2}))

    def first() -> Mapping[str, object]:
        flusher.start()
        flusher.join(BLOCKED_S)  # it waits for its turn; it would be through if nobody was there to be told
        return {"flushed": 1}

    hub.follow(THREAD, ours, first)
    flusher.join()
    hub.leave(THREAD, "completed")
    assert heard(theirs) == [{"flushed": 1}, {"flushed": 2}, {"left": "completed"}]


def test_each_thread_has_its_own_followers() -> None:
    """And one that is gone keeps no other from hearing."""
    hub = Hub()
    other = ThreadId(THREAD[:-1] + "T")
    pairs = [socket.socketpair() for _ in range(3)]
    pairs[0][1].close()
    for (ours, _), thread in zip(pairs, (THREAD, THREAD, other), strict=True):
        hub.follow(thread, ours, lambda: {"flushed": 0})
    hub.publish(THREAD, {"flushed": 5})
    hub.leave(THREAD, "paused")
    hub.leave(other, "killed")
    assert heard(pairs[1][1]) == [{"flushed": 0}, {"flushed": 5}, {"left": "paused"}]
    assert heard(pairs[2][1]) == [{"flushed": 0}, {"left": "killed"}]
