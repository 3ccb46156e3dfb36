"""Network streams to checked addresses, with a deadline, closable from any thread.

A name is looked up once, and the connection goes to the addresses that were checked: a name server
that changes its answer between check and connection (DNS rebinding) has no effect. TLS and the Host
header keep the name.
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
"""Returns the addresses of a name; OSError if it has none."""


def system_lookup(host: str, port: int) -> Sequence[str]:
    """Look up a name with the resolver of this machine."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class NetworkSession:
    """Deadline and cancellation of one client's connections, exchange by exchange.

    has_connected: whether this exchange made a connection.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._woken: queue.SimpleQueue[Sequence[str] | OSError | None] | None = None
        self._exchange = 0
        self._deadline_s = 0.0
        self.is_cut = False
        self.has_connected = False

    def begin(self, deadline_s: float) -> Callable[[], None]:
        """Begin an exchange and return the action that cancels it; without effect once the exchange
        has ended.
        """
        with self._lock:
            self._exchange += 1
            exchange = self._exchange
            self._deadline_s = deadline_s
            self.has_connected = False
        return lambda: self._cut(exchange)

    def end(self) -> None:
        with self._lock:
            self._exchange += 1

    def left_s(self) -> float:
        """Return the seconds until the deadline; raise if it has passed or the exchange was
        cancelled.
        """
        if self.is_cut:
            raise RequestCancelled
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise WebProblem(
                "timeout", "the time for the request was over before the answer was whole"
            )
        return left_s

    def look_up(self, lookup: Lookup, host: str, port: int) -> Sequence[str]:
        """Look up a name before the deadline, in a thread: the system's own timeout is longer and
        cannot be cancelled.
        """
        box: queue.SimpleQueue[Sequence[str] | OSError | None] = queue.SimpleQueue()

        def work() -> None:
            try:
                box.put(lookup(host, port))
            except OSError as exc:
                box.put(exc)

        self._woken = box
        left_s = self.left_s()  # cancelled before this: raises here; after it: the queue gets None
        threading.Thread(target=work, name="lookup", daemon=True).start()
        try:
            found = box.get(timeout=left_s)
        except queue.Empty:
            raise WebProblem("timeout", f"the name {host} was not resolved in time") from None
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

    def _cut(self, exchange: int) -> None:
        with self._lock:
            if exchange != self._exchange:
                return
            self.is_cut = True
            for each in self._sockets:
                _shut(each)
            if self._woken is not None:
                self._woken.put(None)


class Backend(httpcore2.NetworkBackend):
    """Network backend of one client. rules: None for a proxy, which the person chose."""

    def __init__(self, session: NetworkSession, rules: HostRules | None, lookup: Lookup) -> None:
        self._session = session
        self._rules = rules
        self._lookup = lookup

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline counts from the beginning of the exchange
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
                problem = (
                    f"{host} ({address}, port {port}) cannot be connected to: {exc.strerror or exc}"
                )
        self._session.left_s()
        raise WebProblem("connect", problem)

    def _addresses(self, host: str, port: int) -> Sequence[Address]:
        known = literal(host)
        found = (
            [known]
            if known is not None
            else [_plain(text) for text in self._session.look_up(self._lookup, host, port)]
        )
        if self._rules is not None:
            # all of them: a name with a public and a private address is refused
            for address in found:
                self._rules.check_address(host, address)
        return found

    def _connect(self, address: Address, port: int, timeout_s: float) -> socket.socket:
        connection = socket.socket(
            socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM
        )
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
    """Connection whose timeouts are the time until the deadline; those of the library are
    ignored.
    """

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
            # a cancelled connection must not look like the end of the stream
            self._session.left_s()
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
            wrapped = ssl_context.wrap_socket(
                self._socket, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            self._socket = wrapped
            self._session.add(wrapped)
            wrapped.settimeout(left_s)
            wrapped.do_handshake()
        except ssl.SSLCertVerificationError as exc:
            self.close()
            raise WebProblem(
                "tls", f"the certificate of {server_hostname} is not accepted: {exc.verify_message}"
            ) from None
        except OSError as exc:
            self.close()
            self._session.left_s()
            raise WebProblem(
                "tls", f"no TLS with {server_hostname}: {exc.strerror or exc}"
            ) from None
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
    """Parse an address of the resolver without the interface of a link-local one."""
    return ipaddress.ip_address(text.partition("%")[0])


def _is_readable(connection: socket.socket) -> bool:
    """Whether the peer of an idle connection has closed it or sent unexpected bytes."""
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
        # not the method of a TLS socket, which would forget its TLS half-way
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
