"""Filtering HTTP proxy for scripts: connects only to hosts that the policy names, at checked
addresses (`rules`).

Rule 1: a server gets one request, written anew from what was parsed, and nothing that follows it.
Rule 2: the content of a tunnel is not inspected.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self

import h11

from .connection import NetworkSession, connect
from .problems import RequestCancelled, WebProblem
from .proxied import END_OF_HEAD, Denied, origin_form, parse, target_of
from .rules import HostRules

HEAD_BYTES = 64 << 10
MAX_CHARACTERS = 300
TIMEOUT_S = 30.0
"""For a head, a name and a connection together; then for a connection on which nothing moves."""
MOST_CONNECTIONS = 32
CHUNK_BYTES = 64 << 10
UNREACHED = frozenset({"dns", "connect", "timeout"})


class RefusalLog(Protocol):
    """Takes the hosts that are refused, each with the reason; connections append at once."""

    def append(self, refusal: tuple[str, str], /) -> None:
        """Note a host and the reason."""


class Proxy:
    """Proxy server with a thread for each connection; its ``with`` block ends all of them."""

    def __init__(self, rules: HostRules, refused: RefusalLog) -> None:
        self._rules = rules
        self._refused = refused
        self._wake, self._woken = socket.socketpair()
        self._open: set[Callable[[], None]] = set()
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
                session = NetworkSession()
                cut = session.begin(time.monotonic() + TIMEOUT_S)
                session.add(client)
                with self._lock:
                    self._open.add(cut)
                thread = threading.Thread(
                    target=self._attend,
                    args=(client, session, cut),
                    name="script proxy connection",
                )
                threads.append(thread)
                thread.start()
        with self._lock:
            for cut in self._open:
                cut()
        for thread in threads:
            thread.join()

    def _attend(
        self, client: socket.socket, session: NetworkSession, cut: Callable[[], None]
    ) -> None:
        try:
            with client, suppress(OSError, RequestCancelled):
                self._serve(client, session)
        finally:
            with self._lock:
                self._open.discard(cut)
            self._slots.release()

    def _serve(self, client: socket.socket, session: NetworkSession) -> None:
        head, rest = _read_head(client, session)
        incoming = h11.Connection(h11.SERVER)
        address = b" ".join(head.split(b"\r\n")[0].split(b" ")[1:2]).decode("latin-1")
        try:
            request = parse(incoming, head, rest)
            target = target_of(request)
            address = target.authority
            self._rules.check(target)
            server = connect(
                session, target.host, target.port, rules=self._rules, timeout_s=TIMEOUT_S
            )
        except (Denied, WebProblem) as exc:
            if isinstance(exc, WebProblem) and exc.kind in UNREACHED:
                _respond(incoming, client, 502, b"Bad Gateway", f"{address}: {exc}")
                return
            self._refused.append((address[:MAX_CHARACTERS], str(exc)))
            _respond(incoming, client, 403, b"Forbidden", str(exc))
            return
        client.settimeout(TIMEOUT_S)
        server.settimeout(TIMEOUT_S)
        with server:
            if request.method == b"CONNECT":
                established = h11.Response(
                    status_code=200, headers=[], reason=b"Connection established"
                )
                client.sendall(incoming.send(established) or b"")
                server.sendall(incoming.trailing_data[0])
                _relay(client, server)
            else:
                outgoing = h11.Connection(h11.CLIENT)
                server.sendall(outgoing.send(origin_form(request, target)) or b"")
                with suppress(h11.RemoteProtocolError):  # the rest of the body is malformed
                    _exchange(client, server, incoming, outgoing)


def _read_head(client: socket.socket, session: NetworkSession) -> tuple[bytes, bytes]:
    data = b""
    while END_OF_HEAD not in data:
        try:
            client.settimeout(session.left_s())
        except WebProblem as exc:
            raise TimeoutError("no request in time") from exc
        chunk = client.recv(CHUNK_BYTES)
        if not chunk or len(data) > HEAD_BYTES:
            raise ConnectionError("no request")
        data += chunk
    head, _, rest = data.partition(END_OF_HEAD)
    return head, rest


def _respond(
    incoming: h11.Connection, client: socket.socket, status: int, reason: bytes, text: str
) -> None:
    body = f"{text}\n".encode()
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    response = h11.Response(status_code=status, headers=headers, reason=reason)
    events: Sequence[h11.Event] = (response, h11.Data(data=body), h11.EndOfMessage())
    client.sendall(b"".join(incoming.send(event) or b"" for event in events))


def _exchange(
    client: socket.socket,
    server: socket.socket,
    incoming: h11.Connection,
    outgoing: h11.Connection,
) -> None:
    """Write the body of the request to the server as it is parsed, and copy the reply unchanged,
    until the server closes or nothing moved for `TIMEOUT_S`.

    Raises:
        h11.RemoteProtocolError: the body is malformed or ends too early.
    """
    whole = _forward(incoming, outgoing, server)
    reading = [client, server]
    while ready := select.select(reading, [], [], TIMEOUT_S)[0]:
        if client in ready:
            chunk = client.recv(CHUNK_BYTES)
            if not chunk:
                reading.remove(client)
            if not whole:  # what follows a whole request is dropped
                incoming.receive_data(chunk)
                whole = _forward(incoming, outgoing, server)
        if server in ready:
            chunk = server.recv(CHUNK_BYTES)
            if not chunk:
                return
            client.sendall(chunk)


def _forward(incoming: h11.Connection, outgoing: h11.Connection, server: socket.socket) -> bool:
    """Write the parts of a body that have arrived, and return whether it is whole."""
    for event in _arrived(incoming):
        if isinstance(event, h11.EndOfMessage):
            server.sendall(outgoing.send(h11.EndOfMessage()) or b"")  # without its trailers
            return True
        server.sendall(outgoing.send(event) or b"")
    return False


def _arrived(incoming: h11.Connection) -> Iterator[h11.Event]:
    while isinstance(event := incoming.next_event(), h11.Data | h11.EndOfMessage):
        yield event


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
