"""Filtering HTTP proxy for scripts: connects only to hosts that the policy names, at checked
addresses (`rules`).

The content of an encrypted connection is not inspected.
"""

from __future__ import annotations

import ipaddress
import re
import select
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from uncaged_bundles.urls import Target

from .problems import WebProblem
from .rules import HostRules
from .target import canonical, read_target

HEAD_BYTES = 64 << 10
MAX_CHARACTERS = 300
TIMEOUT_S = 30.0
MOST_CONNECTIONS = 32
CHUNK_BYTES = 64 << 10
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(_TOKEN + rb" [!-~]+ HTTP/1\.[01]")
_FIELD = re.compile(_TOKEN + rb":[\t -~\x80-\xff]*")


class Denied(Exception):
    """Refusal of a request; the message has the reason."""


class Proxy:
    """Proxy server with a thread for each connection; its ``with`` block ends all of them."""

    def __init__(self, rules: HostRules, refused: list[tuple[str, str]]) -> None:
        self._rules = rules
        self._refused = refused
        self._wake, self._woken = socket.socketpair()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(MOST_CONNECTIONS)
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wake.close()
        if self._thread is not None:
            self._thread.join()
        self._woken.close()

    def serve(self, listening: socket.socket) -> None:
        """Start to serve a listening socket, which the proxy closes."""
        self._thread = threading.Thread(target=self._accept, args=(listening,), name="script proxy")
        self._thread.start()

    def _accept(self, listening: socket.socket) -> None:
        threads = []
        with listening:
            while True:
                ready, _, _ = select.select([listening, self._woken], [], [])
                if self._woken in ready:
                    break
                client, _ = listening.accept()
                self._slots.acquire()
                thread = threading.Thread(
                    target=self._attend, args=(client,), name="script proxy connection"
                )
                threads.append(thread)
                thread.start()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()

    def _attend(self, client: socket.socket) -> None:
        try:
            with client, self._kept(client):
                client.settimeout(TIMEOUT_S)
                with suppress(OSError):
                    self._answer(client)
        finally:
            self._slots.release()

    def _answer(self, client: socket.socket) -> None:
        head, rest = _read_head(client)
        first, *fields = head.split(b"\r\n")
        method, _, address = first.partition(b" ")
        wanted = address.partition(b" ")[0].decode("latin-1")
        try:
            check_head(first, fields)
            target = _target_of(method, wanted)
            wanted = target.authority
            server = self._connect(target)
        except (Denied, WebProblem) as exc:
            self._refused.append((wanted[:MAX_CHARACTERS], str(exc)))
            _say(client, "403 Forbidden", str(exc))
            return
        except OSError as exc:
            _say(client, "502 Bad Gateway", f"{target.authority}: {exc}")
            return
        with server, self._kept(server):
            if method == b"CONNECT":
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                server.sendall(_origin_form(method, target, fields))
            server.sendall(rest)
            _relay(client, server)

    def _connect(self, target: Target) -> socket.socket:
        self._rules.check(target)
        problem = OSError("it has no address")
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        # check all addresses before the first connection, as for requests
        for *_, address in found:
            self._rules.check_address(
                target.host, ipaddress.ip_address(str(address[0]).partition("%")[0])
            )
        for family, kind, protocol, _, address in found:
            server = socket.socket(family, kind, protocol)
            server.settimeout(TIMEOUT_S)
            try:
                server.connect(address)
            except OSError as exc:
                server.close()
                problem = exc
                continue
            return server
        raise problem

    @contextmanager
    def _kept(self, connection: socket.socket) -> Iterator[None]:
        """Register a connection, so that the end of the proxy shuts it down."""
        with self._lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = client.recv(CHUNK_BYTES)
        if not chunk or len(data) > HEAD_BYTES:
            raise ConnectionError("no request")
        data += chunk
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def check_head(first: bytes, fields: Sequence[bytes]) -> None:
    """Refuse a head that another parser could split differently, such as at a bare line feed:
    request smuggling.
    """
    if not _REQUEST_LINE.fullmatch(first):
        raise Denied("the request's first line is not METHOD ADDRESS HTTP/1.1")
    if any(not _FIELD.fullmatch(field) for field in fields):
        raise Denied("a header of the request is not NAME: VALUE on one line")
    lengths = [
        field
        for field in fields
        if field.lower().startswith((b"content-length:", b"transfer-encoding:"))
    ]
    if len(lengths) > 1:
        raise Denied("the request states its length twice")


def _target_of(method: bytes, text: str) -> Target:
    """Return the target of a request: ``host:port`` for a tunnel, else a whole address."""
    if method != b"CONNECT":
        target = read_target(text)
        if target.scheme != "http":
            raise Denied(f"{text[:200]!r}: a proxy is asked for a tunnel to an encrypted address")
        return target
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Denied(f"{text[:200]!r} is no host and port")
    return Target(scheme="https", host=canonical(host), port=int(port), path="/")


def _origin_form(method: bytes, target: Target, fields: Sequence[bytes]) -> bytes:
    """Return the request in origin form, with ``Connection: close``."""
    kept = [
        line
        for line in fields
        if not line.lower().startswith((b"proxy-", b"connection:", b"keep-alive:", b"host:"))
    ]
    first = b" ".join((method, target.path.encode("ascii"), b"HTTP/1.1"))
    return b"\r\n".join(
        [first, f"Host: {target.authority}".encode("ascii"), *kept, b"Connection: close", b"", b""]
    )


def _say(client: socket.socket, status: str, text: str) -> None:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    client.sendall(head.encode() + body)


def _relay(client: socket.socket, server: socket.socket) -> None:
    """Copy in both directions until both sides have closed, or until nothing moved for
    `TIMEOUT_S`.
    """
    other = {client: server, server: client}
    while other:
        ready, _, _ = select.select(list(other), [], [], TIMEOUT_S)
        if not ready:
            return
        for source in ready:
            chunk = source.recv(CHUNK_BYTES)
            if chunk:
                other[source].sendall(chunk)
                continue
            with suppress(OSError):
                other[source].shutdown(socket.SHUT_WR)
            del other[source]
