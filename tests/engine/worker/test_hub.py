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
ROUNDS = 1000
"""More than the smallest buffer holds."""


def heard(connection: socket.socket) -> list[Mapping[str, object]]:
    """All events of a connection that was hung up."""
    with connection, connection.makefile("rb") as lines:
        return [json.loads(line) for line in lines]


def test_what_happens_while_a_follower_comes_is_not_lost() -> None:
    """A flush between the look at the journal and the first word to the follower is the last one
    for a long time, perhaps.
    """
    hub = Hub()
    ours, theirs = socket.socketpair()
    flusher = threading.Thread(target=hub.publish, args=(THREAD, {"flushed": 2}))

    def first() -> Mapping[str, object]:
        flusher.start()
        # the flusher waits for its turn; without a follower it would be done at once
        flusher.join(BLOCKED_S)
        return {"flushed": 1}

    hub.follow(THREAD, ours, first)
    flusher.join()
    hub.leave(THREAD, "completed")
    assert heard(theirs) == [{"flushed": 1}, {"flushed": 2}, {"left": "completed"}]


def test_each_thread_has_its_own_followers() -> None:
    """A follower gets the events of its thread only, and one that is gone delays no other."""
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


def packets(connection: socket.socket) -> list[list[Mapping[str, object]]]:
    """The events of each write, of a connection that keeps writes apart and was hung up."""
    found = []
    with connection:
        while data := connection.recv(1 << 20):
            found.append([json.loads(line) for line in data.splitlines()])
    return found


def test_twenty_followers_cost_one_write_each_and_batch() -> None:
    """A thousand flushes are gathered while the batch is due, and sent as one: the last one tells
    how far the journal is on disk.
    """
    hub = Hub(batch_s=3600)
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(20)]
    for ours, _ in pairs:
        hub.follow(THREAD, ours, lambda: {"flushed": 0})
    for size in range(1, 1001):
        hub.publish(THREAD, {"flushed": size})
    hub.leave(THREAD, "completed")
    hub.close()
    for _, theirs in pairs:
        writes = packets(theirs)
        assert len(writes) <= 3, "the state, the first event after a silence, and the rest"
        assert writes[-1][-2:] == [{"flushed": 1000}, {"left": "completed"}]


def test_progress_keeps_its_place_between_flushes() -> None:
    """An effect's progress comes after the intent's flush and before the outcome's."""
    hub = Hub(batch_s=3600)
    ours, theirs = socket.socketpair()
    hub.follow(THREAD, ours, lambda: {"flushed": 0})
    events: list[Mapping[str, object]] = [
        {"flushed": 1},
        {"progress": {"text": "a"}},
        {"flushed": 2},
        {"progress": {"text": "b"}},
    ]
    for event in events:
        hub.publish(THREAD, event)
    hub.leave(THREAD, "paused")
    assert heard(theirs) == [{"flushed": 0}, *events, {"left": "paused"}]
    hub.close()


def test_a_follower_that_does_not_read_is_dropped_and_keeps_no_other_waiting() -> None:
    """A follower whose buffer is full loses progress first, then its connection; the other gets
    every event.
    """
    hub = Hub(batch_s=0)
    (ours, full), (others, theirs) = socket.socketpair(), socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with full, theirs, theirs.makefile("rb") as reader:
        hub.follow(THREAD, ours, lambda: {"flushed": 0})
        hub.follow(THREAD, others, lambda: {"flushed": 0})
        assert json.loads(reader.readline()) == {"flushed": 0}
        for size in range(1, ROUNDS + 1):
            progress = {"progress": {"text": "x" * 200}}
            hub.publish(THREAD, progress)
            hub.publish(THREAD, {"flushed": size})
            # read at once: this follower keeps up, however slow the machine is
            assert json.loads(reader.readline()) == progress
            assert json.loads(reader.readline()) == {"flushed": size}
        full.setblocking(False)
        read = bytearray()
        while part := full.recv(1 << 16):  # hung up while the thread goes on, not an empty buffer
            read += part
        assert read.endswith(b"\n"), "no event was sent in part"
        hub.leave(THREAD, "completed")
        assert json.loads(reader.readline()) == {"left": "completed"}
        hub.close()
