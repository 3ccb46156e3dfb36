"""Browser session without a browser: a listener at the session's socket that replies as a test
says.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from typing import Any

from uncaged_browser.session.address import DEFAULT_SESSION, socket_path
from uncaged_bundles.storage.store import Store

Reply = Callable[[Mapping[str, Any], int], Mapping[str, Any] | None]
"""Returns the reply to a request on the connection of a number; None closes the connection."""


class ScriptedSession(ThreadingUnixStreamServer):
    """requests: those of all connections, in their order."""

    daemon_threads = True

    def __init__(self, path: Path, reply: Reply) -> None:
        self.connections: list[socket.socket] = []
        self.requests: list[Mapping[str, Any]] = []
        self.reply = reply
        super().__init__(str(path), Replies)


class Replies(StreamRequestHandler):
    server: ScriptedSession

    def handle(self) -> None:
        self.server.connections.append(self.connection)
        number = len(self.server.connections)
        for line in self.rfile:
            request = json.loads(line)
            self.server.requests.append(request)
            reply = self.server.reply(request, number)
            if reply is None:
                return
            self.wfile.write(json.dumps(reply).encode() + b"\n")


@contextmanager
def scripted_session(store: Store, reply: Reply) -> Iterator[ScriptedSession]:
    """Serve for the block; after it the connections are closed, as those of a killed process."""
    path = socket_path(store, DEFAULT_SESSION)
    path.parent.mkdir(parents=True, exist_ok=True)
    with ScriptedSession(path, reply) as server:
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
