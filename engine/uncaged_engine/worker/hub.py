"""Followers of threads are told what happened after it is on disk, and can never slow a thread down.

An event is a few bytes: how far the journal is flushed (the follower reads the file itself), what an effect says of its progress, that the
worker left the thread. A follower that does not keep up loses progress events, and is dropped if it cannot even take a flush event.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping

from uncaged_bundles.ids import ThreadId

from .wire import pack


class Hub:
    """Connections by thread. Safe to use from every thread of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followers: dict[ThreadId, list[socket.socket]] = {}

    def follow(self, thread: ThreadId, connection: socket.socket, first: Callable[[], Mapping[str, object]]) -> None:
        """Add a follower (its connection is ours from now on) and tell it where things stand.

        Args:
            first: is asked once the follower is there, so that what happens in between reaches it one way or the other.
        """
        connection.setblocking(False)
        with self._lock:
            self._followers.setdefault(thread, []).append(connection)
            if not _tell(connection, pack(first())):
                self._followers[thread].remove(connection)
                connection.close()

    def publish(self, thread: ThreadId, event: Mapping[str, object]) -> None:
        if thread not in self._followers:
            return
        data = pack(event)
        with self._lock:
            followers = self._followers.get(thread, [])
            kept = [connection for connection in followers if _tell(connection, data)]
            for lost in set(followers) - set(kept):
                lost.close()
            self._followers[thread] = kept

    def leave(self, thread: ThreadId, word: str) -> None:
        """The worker is done with the thread: tell its followers and let them go."""
        self.publish(thread, {"left": word})
        with self._lock:
            for connection in self._followers.pop(thread, []):
                connection.close()


def _tell(connection: socket.socket, data: bytes) -> bool:
    try:
        return connection.send(data) == len(data)
    except OSError:
        return False
