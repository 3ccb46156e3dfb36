"""HTTP service on loopback whose answers are a function of the request, and whose port stays the
same while its state changes. A checker reads the requests and the state.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

__all__ = ["Answer", "Request", "Service", "answer", "page", "service"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request. query, form: the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes

    @property
    def form(self) -> Mapping[str, str]:
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    @property
    def json(self) -> Any:
        """Return the body's JSON value; None if it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int = 200
    kind: str = "application/json"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Answer]


def answer(value: object, status: int = 200, **headers: str) -> Answer:
    """Return a JSON answer; underscores in the names of headers become hyphens."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(status=status, body=json.dumps(value).encode(), headers=named)


def page(html: str, status: int = 200) -> Answer:
    return Answer(status=status, kind="text/html; charset=utf-8", body=html.encode())


NOT_FOUND = answer({"error": "not found"}, 404)


class Service:
    """Running service. handler: may be replaced while it runs. requests: since the last reset."""

    def __init__(self) -> None:
        self.handler: Handler = lambda _: NOT_FOUND
        self.requests: list[Request] = []
        self._server = _Server(self)
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def serve(self, handler: Handler) -> None:
        """Replace the state; forget the requests."""
        self.handler, self.requests = handler, []

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def service() -> Iterator[Service]:
    running = Service()
    try:
        yield running
    finally:
        running.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: Service) -> None:
        super().__init__(("127.0.0.1", 0), _RequestHandler)
        self.owner = owner

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that closes the connection early."""


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def _attend(self) -> None:
        parts = urlsplit(self.path)
        request = Request(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            body=self.rfile.read(int(self.headers.get("content-length") or 0)),
        )
        if request.path != "/favicon.ico":
            self.server.owner.requests.append(request)
        found = self.server.owner.handler(request)
        self.send_response(found.status)
        self.send_header("content-type", found.kind)
        self.send_header("content-length", str(len(found.body)))
        for name, value in found.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(found.body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _attend
