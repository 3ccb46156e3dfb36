"""Event hub of a worker: sends the followers of a thread its events, once they are on disk and
without blocking the thread.

An event is a few bytes: how far the journal is flushed (the follower reads the file itself), what
an effect says of its progress, that the worker left the thread. One thread of execution sends for
all: what came since its last batch is one write per follower. A follower that does not keep up
loses progress events, and is dropped if it cannot take how far the journal is flushed.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping

from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass, field

from .wire import pack

BATCH_S = 0.02
"""Interval between batches; the first event after a pause is sent at once."""
MOST_WAITING = 1000
"""Most events of a thread in a batch; further progress is dropped."""
FLUSHED = "flushed"
Event = Mapping[str, object]


@dataclass(slots=True, eq=False)
class _Audience:
    """Followers of one thread, and the events that they have not been sent yet."""

    thread: ThreadId
    connections: list[socket.socket] = field(default_factory=list)
    waiting: list[Event] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """Queue an event for the next batch; of consecutive flushes only the last is kept."""
        # followers read the file up to there, so a later flush includes all earlier ones
        if FLUSHED in event and self.waiting and FLUSHED in self.waiting[-1]:
            self.waiting[-1] = event
        elif FLUSHED in event or len(self.waiting) < MOST_WAITING:
            self.waiting.append(event)


class Hub:
    """Connections by thread. Safe to use from every thread of the process."""

    def __init__(self, *, batch_s: float = BATCH_S) -> None:
        self._batch_s = batch_s
        self._changed = threading.Condition()
        self._audiences: dict[ThreadId, _Audience] = {}
        self._left: list[_Audience] = []
        self._closing = False
        self._is_idle = False
        self._sender: threading.Thread | None = None

    def follow(
        self, thread: ThreadId, connection: socket.socket, first: Callable[[], Event]
    ) -> None:
        """Add a follower, take over its connection, and send it the current state.

        Args:
            first: called after the follower was added, so that an event in between reaches it one
                way or the other.
        """
        connection.setblocking(False)
        with self._changed:
            self._start()
            # added before *first* is called: an event in between is queued or included in the state
            audience = self._audiences.setdefault(thread, _Audience(thread))
            if _send(connection, pack(first())):
                audience.connections.append(connection)
            else:
                connection.close()

    def publish(self, thread: ThreadId, event: Event) -> None:
        """Queue an event for the followers of a thread."""
        # read without the lock: drivers come here after each flush, and most have no follower
        if thread not in self._audiences:
            return
        with self._changed:
            audience = self._audiences.get(thread)
            if audience is not None:
                audience.take(event)
                if self._is_idle:  # in its pause it would only look, and sleep again
                    self._changed.notify()

    def leave(self, thread: ThreadId, word: str) -> None:
        """Send the followers of a thread that the worker left the rest of its events at once, and
        close their connections.
        """
        with self._changed:
            # popped: a later follower belongs to the thread's next driver
            audience = self._audiences.pop(thread, None)
            if audience is not None:
                audience.waiting.append({"left": word})
                self._left.append(audience)
                self._changed.notify()

    def close(self) -> None:
        """Send the remaining events and end the sending thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._sender is not None:
            self._sender.join()

    def _start(self) -> None:
        if self._sender is None:
            self._sender = threading.Thread(target=self._run, name="followers", daemon=True)
            self._sender.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_idle = True
                self._changed.wait_for(
                    lambda: (
                        self._closing
                        or self._left
                        or any(one.waiting for one in self._audiences.values())
                    )
                )
                self._is_idle = False
                batch = self._take()
                is_last = self._closing
            # outside the lock, which drivers need to publish: each send is a system call
            for audience, connections, events, is_end in batch:
                lost = _send_all(connections, events)
                self._forget(audience, connections if is_end else lost)
            if is_last:
                return
            with self._changed:
                # events collect in this pause; an ended thread's followers do not wait for it
                self._changed.wait_for(lambda: self._closing or self._left, timeout=self._batch_s)

    def _take(self) -> list[tuple[_Audience, list[socket.socket], list[Event], bool]]:
        """Take the queued events with their followers, and whether they are the last; a later
        follower gets the state from `follow`.
        """
        left, self._left = self._left, []
        found = []
        for audience in (*self._audiences.values(), *left):
            if audience.waiting:
                found.append(
                    (audience, list(audience.connections), audience.waiting, audience in left)
                )
                audience.waiting = []
        return found

    def _forget(self, audience: _Audience, lost: list[socket.socket]) -> None:
        if not lost:
            return
        for connection in lost:
            connection.close()
        with self._changed:
            audience.connections = [one for one in audience.connections if one not in lost]
            if not audience.connections and self._audiences.get(audience.thread) is audience:
                del self._audiences[audience.thread]


def _send_all(connections: list[socket.socket], events: list[Event]) -> list[socket.socket]:
    """Write the events to each connection; return the connections that failed."""
    data = b"".join(map(pack, events))
    may_be_lost = not any(FLUSHED in event or "left" in event for event in events)
    return [one for one in connections if not _send(one, data, may_be_lost=may_be_lost)]


def _send(connection: socket.socket, data: bytes, *, may_be_lost: bool = False) -> bool:
    """Send; tell whether the follower is intact: it took everything, or nothing of what may be
    dropped.
    """
    try:
        # a part of it would leave half a line, after which no event can be read
        return connection.send(data) == len(data)
    except BlockingIOError:
        return may_be_lost
    except OSError:
        return False
