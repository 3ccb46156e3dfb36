"""The world of the soak test: a server on loopback with a log of its own, and a file to which
scripts append.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLOWEST_S = 0.4


class World:
    """Counts the requests of each idempotency key. slowest_s: the longest time before an answer."""

    def __init__(self, chance: random.Random, *, slowest_s: float = SLOWEST_S) -> None:
        self._slowest_s = slowest_s
        self.requests: Counter[str] = Counter()
        self._chance = chance
        self._lock = threading.Lock()

    def receive(self, key: str) -> None:
        with self._lock:
            self.requests[key] += 1
            pause_s = self._chance.uniform(0, self._slowest_s)
        time.sleep(pause_s)  # so that a kill meets requests in flight


@contextmanager
def serving(world: World, on_request: Callable[[str, Callable[[], bool]], None]) -> Iterator[int]:
    """Serve until the block ends; yields the port.

    Args:
        on_request: called for each POST when it arrives, with its idempotency key and whether the
            client is still there.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.reply()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            key = self.headers["Idempotency-Key"] or ""
            on_request(key, self.is_connected)
            world.receive(key)
            self.reply()

        def is_connected(self) -> bool:
            try:
                return bool(self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
            except BlockingIOError:
                return True
            except OSError:
                return False

        def reply(self) -> None:
            with suppress(OSError):  # the worker was killed meanwhile
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that was killed is no error
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
