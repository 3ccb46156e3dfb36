"""Connection to a session that a thread of execution keeps."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from typing import Any

import pytest
from uncaged_browser.session.address import socket_path
from uncaged_browser.session.client import SessionGone, kept_client
from uncaged_bundles.storage.store import Store

NAME = "default"


class Session(ThreadingUnixStreamServer):
    """A session that answers each request with the number of its connection."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        self.connections: list[socket.socket] = []
        super().__init__(str(path), Replies)


class Replies(StreamRequestHandler):
    server: Session

    def handle(self) -> None:
        self.server.connections.append(self.connection)
        number = len(self.server.connections)
        for _ in self.rfile:
            self.wfile.write(json.dumps({"value": {"number": number}}).encode() + b"\n")


@contextmanager
def session(store: Store) -> Iterator[Session]:
    """Serve for the block; after it the connections are closed, as those of a killed process."""
    path = socket_path(store, NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    with Session(path) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield server
        finally:
            server.shutdown()
            serving.join()
            for connection in server.connections:
                with suppress(OSError):  # its client has ended it
                    connection.shutdown(socket.SHUT_RDWR)
            path.unlink()


def asked(store: Store) -> Any:
    """Return the number of the connection on which a request was answered."""
    with kept_client(store, NAME) as client:
        return client.status()["number"]


def test_a_thread_of_execution_keeps_its_connection(store: Store) -> None:
    """Another one has another connection; each is used again."""
    with session(store):
        assert [asked(store), asked(store)] == [1, 1]
        found: list[Any] = []
        other = threading.Thread(target=lambda: found.extend((asked(store), asked(store))))
        other.start()
        other.join()
        assert found == [2, 2]
        assert asked(store) == 1


def test_a_session_that_was_killed_and_started_again_is_connected_to_again(store: Store) -> None:
    """No request is lost to the connection of the former process."""
    with session(store):
        assert asked(store) == 1
    with session(store):
        assert [asked(store), asked(store)] == [1, 1]


def test_a_connection_that_was_cut_or_failed_is_not_used_again(store: Store) -> None:
    """A cut from another thread, and a block that fails, end it."""
    with session(store):
        with kept_client(store, NAME) as client:
            client.cut()
            with pytest.raises(SessionGone):
                client.status()
        assert asked(store) == 2
        with pytest.raises(RuntimeError), kept_client(store, NAME):
            raise RuntimeError
        assert asked(store) == 3
