"""Connections to checked addresses, with a deadline, closable from any thread.

A name is looked up once, and the connection goes to the addresses that were checked: a name server
that changes its answer between check and connection (DNS rebinding) has no effect. TLS and the Host
header keep the name.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

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

    Nothing is sent before the first `begin`. has_connected: whether this exchange made a
    connection.
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

    @property
    def is_over(self) -> bool:
        """Whether the exchange was cancelled or its deadline has passed."""
        return self.is_cut or time.monotonic() >= self._deadline_s

    def wait_s(self, timeout_s: float | None) -> float:
        """Return the seconds to wait for a single read or write; raises like `left_s`."""
        left_s = self.left_s()
        return left_s if timeout_s is None else min(timeout_s, left_s)

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


def connect(
    session: NetworkSession,
    host: str,
    port: int,
    *,
    rules: HostRules | None,
    lookup: Lookup = system_lookup,
    timeout_s: float = CONNECT_S,
) -> socket.socket:
    """Connect to the first address of *host* that answers.

    Args:
        rules: None for a server that the person configured.
    Raises:
        WebProblem: the host has no address, an address is refused, or none answers.
    """
    problem = ""
    addresses = _checked_addresses(session, host, port, rules, lookup)
    for number, address in enumerate(addresses):
        share_s = session.wait_s(timeout_s) / (len(addresses) - number)
        try:
            return _connect(session, address, port, share_s)
        except TimeoutError:
            problem = f"{host} ({address}, port {port}) did not answer within {share_s:.1f} s"
        except OSError as exc:
            problem = (
                f"{host} ({address}, port {port}) cannot be connected to: {exc.strerror or exc}"
            )
    session.left_s()
    raise WebProblem("connect", problem)


def _checked_addresses(
    session: NetworkSession, host: str, port: int, rules: HostRules | None, lookup: Lookup
) -> Sequence[Address]:
    known = literal(host)
    found = (
        [known]
        if known is not None
        else [_plain(text) for text in session.look_up(lookup, host, port)]
    )
    if rules is not None:
        # all of them: a name with a public and a private address is refused
        for address in found:
            rules.check_address(host, address)
    return found


def _connect(
    session: NetworkSession, address: Address, port: int, timeout_s: float
) -> socket.socket:
    connection = socket.socket(
        socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM
    )
    session.add(connection)
    try:
        connection.settimeout(timeout_s)
        connection.connect((str(address), port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        session.drop(connection)
        connection.close()
        session.left_s()
        raise
    return connection


def _plain(text: str) -> Address:
    """Parse an address of the resolver without the interface of a link-local one."""
    return ipaddress.ip_address(text.partition("%")[0])


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        # not the method of a TLS socket, which would forget its TLS half-way
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
