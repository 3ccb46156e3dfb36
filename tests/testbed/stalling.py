"""Proxy on loopback that can stop to pass bytes on, as a network that is split does: no connection
is closed, and none is refused.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK_BYTES = 65_536


class StallingProxy:
    """Proxy to one port of loopback. port: its own. It passes on while `passes` is set."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.passes = threading.Event()
        self.passes.set()

    def serve(self) -> None:
        """Accept connections until the proxy is closed."""
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            self._open += (client, server)
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def close(self) -> None:
        """Close all connections."""
        self.passes.set()
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(CHUNK_BYTES):
                self.passes.wait()
                other.sendall(data)
        self.passes.wait()  # nor does an end get through
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)


@contextmanager
def stalling_proxy(target: int) -> Iterator[StallingProxy]:
    """Run a proxy to a port for a block."""
    proxy = StallingProxy(target)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.close()
