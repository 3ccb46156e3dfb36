"""HTTP server on loopback with scripted answers, with TLS if asked."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request as it came; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer. body: several pieces are sent as they come, in chunks. raw: the body is all there
    is, status line included.
    """

    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | Iterable[bytes] = b""
    raw: bool = False


Script = Callable[[Seen], Reply]


def text(
    body: str, kind: str = "text/plain; charset=utf-8", *, status: int = 200, **headers: str
) -> Reply:
    more = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Reply(status=status, headers=[("Content-Type", kind), *more], body=body.encode())


def data(value: Any, *, status: int = 200, **headers: str) -> Reply:
    return text(json.dumps(value), "application/json", status=status, **headers)


def redirect(location: str, status: int = 302) -> Reply:
    return Reply(status=status, headers=[("Location", location)])


def raw(*pieces: bytes) -> Reply:
    return Reply(body=pieces, raw=True)


@dataclass(slots=True, kw_only=True)
class WebServer:
    """connections: how many there were. names: what TLS clients called it. ended: set when it
    stops, so that no script waits longer.
    """

    port: int
    scheme: str
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    names: list[str | None] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}"


@contextmanager
def serving(script: Script, *, certificate: Path | None = None) -> Iterator[WebServer]:
    """certificate: a PEM file with a key and what it certifies; the server then speaks TLS."""
    server = _Server(script, certificate)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    ).start()
    try:
        yield server.web
    finally:
        server.web.ended.set()
        server.shutdown()
        server.hang_up()
        server.server_close()


def certify(directory: Path, *names: str) -> Path:
    """A key and a certificate for these names that vouches for itself, in one file."""
    path, key = directory / f"{names[0]}.pem", directory / f"{names[0]}.key"
    among = ",".join(f"DNS:{name}" for name in names)
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    about = [
        "-subj",
        f"/CN={names[0]}",
        "-addext",
        f"subjectAltName={among}",
        "-keyout",
        str(key),
        "-out",
        str(path),
    ]
    subprocess.run([*made, *about], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + key.read_bytes())
    return path


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, script: Script, certificate: Path | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._open: list[socket.socket] = []
        self.script = script
        self.web = WebServer(
            port=int(self.server_address[1]), scheme="https" if certificate else "http"
        )
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
        if self.tls is not None and certificate is not None:
            self.tls.load_cert_chain(certificate)
            self.tls.sni_callback = lambda _socket, name, _context: self.web.names.append(name)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._open.append(connection.dup())  # TLS takes the first over
        return connection, address

    def hang_up(self) -> None:
        """End the connections that clients keep; nothing waits for them any more."""
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away in the middle are what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    disable_nagle_algorithm = True  # or each answer waits for an acknowledgement
    server: _Server

    def setup(self) -> None:
        self.server.web.connections += 1
        if self.server.tls is not None:
            self.request.settimeout(self.timeout)
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def finish(self) -> None:
        super().finish()
        if self.server.tls is not None:
            with suppress(OSError):
                # the server would try its own socket, which TLS has taken over
                socket.socket.shutdown(self.request, socket.SHUT_RDWR)
            self.request.close()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(method=self.command, path=self.path, headers=headers, body=body)
        self.server.web.seen.append(seen)
        try:
            self._answer(self.server.script(seen))
        except OSError:  # the other side has had enough
            self.close_connection = True

    def _answer(self, reply: Reply) -> None:
        if reply.raw:
            self.close_connection = True
            for piece in [reply.body] if isinstance(reply.body, bytes) else reply.body:
                self.wfile.write(piece)
            return
        self.send_response(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        if isinstance(reply.body, bytes):
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body if self.command != "HEAD" else b"")
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in reply.body:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")
