"""A web server on loopback that calls a function for each request, and then answers ``ok``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def answering(before: Callable[[str], None]) -> Iterator[int]:
    """Serve requests for a block; yield the port.

    Args:
        before: called with the path of each request, in a thread of its own.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            before(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Ignore that the client of a killed effect has hung up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()
