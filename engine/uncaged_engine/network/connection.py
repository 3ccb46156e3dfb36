"""A connection goes to an address that was checked, ends at its deadline whatever the server does, and can be cut from any thread.

The name is looked up once, here, and what was found is what is connected to: a name server that changes its mind between a check
and a connection changes nothing. TLS and the Host header keep the name.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import httpcore2
from uncaged_bundles.addresses import Address, literal

from .problems import RequestCancelled, WebProblem
from .rules import HostRules

CONNECT_S = 10.0
Lookup = Callable[[str, int], Sequence[str]]
"""The addresses of a name; OSError if it has none."""


def system_lookup(host: str, port: int) -> Sequence[str]:
    """As this machine looks up names."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class NetworkSession:
    """What the connections of one client share: one deadline, one way to cut them all, and turns, each of which is one exchange.

    has_connected: whether this turn made a connection.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._woken: queue.SimpleQueue[Sequence[str] | OSError | None] | None = None
        self._turn = 0
        self._deadline_s = 0.0
        self.is_cut = False
        self.has_connected = False

    def begin(self, deadline_s: float) -> Callable[[], None]:
        """Begin a turn; returns what cuts it, and does nothing any more once the turn is over."""
        with self._lock:
            self._turn += 1
            turn = self._turn
            self._deadline_s = deadline_s
            self.has_connected = False
        return lambda: self._cut(turn)

    def end(self) -> None:
        with self._lock:
            self._turn += 1

    def left_s(self) -> float:
        """Seconds until the deadline; raises once it has passed or the turn was cut."""
        if self.is_cut:
            raise RequestCancelled
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise WebProblem("timeout", "the time for the request was over before the answer was whole")
        return left_s

    def look_up(self, lookup: Lookup, host: str, port: int) -> Sequence[str]:
        """Look a name up, for no longer than there is time: the system's own patience ends later and cannot be cut."""
        box: queue.SimpleQueue[Sequence[str] | OSError | None] = queue.SimpleQueue()

        def work() -> None:
            try:
                box.put(lookup(host, port))
            except OSError as exc:
                box.put(exc)

        self._woken = box
        left_s = self.left_s()  # cut before this: told here; after it: the box is filled
        threading.Thread(target=work, name="lookup", daemon=True).start()
        try:
            found = box.get(timeout=left_s)
        except queue.Empty:
            raise WebProblem("timeout", f"the name {host} was not found out in time") from None
        finally:
            self._woken = None
        self.left_s()
        if isinstance(found, OSError):
            raise WebProblem("dns", f"the name {host} is not known ({found.strerror or found})")
        if not found:
            raise WebProblem("dns", f"the name {host} has no address")
        return found

    def add(self, connection: socket.socket) -> None:
        with self._lock:
            self._sockets.add(connection)
            self.has_connected = True
            if self.is_cut:
                _shut(connection)

    def drop(self, connection: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(connection)

    def _cut(self, turn: int) -> None:
        with self._lock:
            if turn != self._turn:
                return
            self.is_cut = True
            for each in self._sockets:
                _shut(each)
            if self._woken is not None:
                self._woken.put(None)


class Backend(httpcore2.NetworkBackend):
    """Connects for one client. rules: None for a proxy, which the person chose."""

    def __init__(self, session: NetworkSession, rules: HostRules | None, lookup: Lookup) -> None:
        self._session = session
        self._rules = rules
        self._lookup = lookup

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - ours counts from the beginning of the exchange
        local_address: str | None = None,  # noqa: ARG002 - the protocol's signature
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the protocol's signature
    ) -> Stream:
        problem = ""
        addresses = self._addresses(host, port)
        for number, address in enumerate(addresses):
            share_s = min(CONNECT_S, self._session.left_s()) / (len(addresses) - number)
            try:
                return Stream(self._session, self._connect(address, port, share_s))
            except TimeoutError:
                problem = f"{host} ({address}, port {port}) did not answer within {share_s:.1f} s"
            except OSError as exc:
                problem = f"{host} ({address}, port {port}) cannot be connected to: {exc.strerror or exc}"
        self._session.left_s()
        raise WebProblem("connect", problem)

    def _addresses(self, host: str, port: int) -> Sequence[Address]:
        known = literal(host)
        found = [known] if known is not None else [_plain(text) for text in self._session.look_up(self._lookup, host, port)]
        if self._rules is not None:
            for address in found:  # all of them: a name that has a private address besides a public one is no accident
                self._rules.check_address(host, address)
        return found

    def _connect(self, address: Address, port: int, timeout_s: float) -> socket.socket:
        connection = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
        self._session.add(connection)
        try:
            connection.settimeout(timeout_s)
            connection.connect((str(address), port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            self._session.drop(connection)
            connection.close()
            self._session.left_s()
            raise
        return connection


class Stream(httpcore2.NetworkStream):
    """One connection; its timeouts are what is left until the deadline, not what the library would set."""

    def __init__(self, session: NetworkSession, connection: socket.socket) -> None:
        self._session = session
        self._socket = connection

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - see the class
        try:
            self._socket.settimeout(self._session.left_s())
            data = self._socket.recv(max_bytes)
        except OSError as exc:
            self._session.left_s()
            raise httpcore2.ReadError(exc.strerror or str(exc)) from exc
        if not data:
            self._session.left_s()  # a connection that was cut must not pass for one that ended
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - see the class
        try:
            view = memoryview(buffer)
            while view:
                self._socket.settimeout(self._session.left_s())
                view = view[self._socket.send(view) :]
        except OSError as exc:
            self._session.left_s()
            raise httpcore2.WriteError(exc.strerror or str(exc)) from exc

    def close(self) -> None:
        self._session.drop(self._socket)
        self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - see the class
    ) -> Stream:
        try:
            left_s = self._session.left_s()
            self._session.drop(self._socket)
            wrapped = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname, do_handshake_on_connect=False)
            self._socket = wrapped
            self._session.add(wrapped)
            wrapped.settimeout(left_s)
            wrapped.do_handshake()
        except ssl.SSLCertVerificationError as exc:
            self.close()
            raise WebProblem("tls", f"the certificate of {server_hostname} is not accepted: {exc.verify_message}") from None
        except OSError as exc:
            self.close()
            self._session.left_s()
            raise WebProblem("tls", f"no TLS with {server_hostname}: {exc.strerror or exc}") from None
        return self

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "ssl_object":
                return self._socket if isinstance(self._socket, ssl.SSLSocket) else None
            case "is_readable":
                return _is_readable(self._socket)
            case _:
                return None


def _plain(text: str) -> Address:
    """An address as the system gives it, without the interface that a link-local one names."""
    return ipaddress.ip_address(text.partition("%")[0])


def _is_readable(connection: socket.socket) -> bool:
    """Whether the other side of an idle connection has closed it, or says what nobody asked."""
    if connection.fileno() < 0:
        return True
    connection.settimeout(0)
    try:
        socket.socket.recv(connection, 1, socket.MSG_PEEK)  # the bytes on the wire, TLS or not
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # not the method of a TLS socket, which would forget its TLS half-way
