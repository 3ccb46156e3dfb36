"""A small HTTP proxy connects only to the hosts that a policy names, and to no private address that it does not name itself.

An entry is a host, ``*.domain`` for what is below a domain, or either with ``:port``; without a port 80 and 443 are meant. What travels
inside an encrypted connection is not looked at.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from .wish import declared

HEAD_BYTES = 64 << 10
TIMEOUT_S = 30.0
MOST_CONNECTIONS = 32
USUAL_PORTS = (80, 443)
CHUNK_BYTES = 64 << 10


class Denied(Exception):
    """The proxy does not connect there; the message says why."""


class Proxy:
    """Serves until its ``with`` block is left; each connection in a thread of its own."""

    def __init__(self, hosts: Sequence[str], refused: list[str]) -> None:
        self._hosts = tuple(hosts)
        self._refused = refused
        self._wake, self._woken = socket.socketpair()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(MOST_CONNECTIONS)
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._wake.close()
        if self._thread is not None:
            self._thread.join()
        self._woken.close()

    def serve(self, listening: socket.socket) -> None:
        """Take over a listening socket and return."""
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
                thread = threading.Thread(target=self._attend, args=(client,), name="script proxy connection")
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
        method, _, target = head.partition(b" ")
        target = target.partition(b" ")[0]
        try:
            host, port = _split(method, target)
            server = self._connect(host, port)
        except Denied as exc:
            self._refused.append(str(exc))
            _say(client, "403 Forbidden", str(exc))
            return
        except OSError as exc:
            _say(client, "502 Bad Gateway", f"{target.decode('latin-1')}: {exc}")
            return
        with server, self._kept(server):
            if method == b"CONNECT":
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                server.sendall(_origin_form(head, target))
            server.sendall(rest)
            _relay(client, server)

    def _connect(self, host: str, port: int) -> socket.socket:
        name = host.lower().rstrip(".")
        if not any(_matches(entry, name, port) for entry in self._hosts):
            place = name if port in USUAL_PORTS else f"{name}:{port}"
            raise Denied(f"the host {place!r} is not among the policy's network; {declared('network', [*self._hosts, place])}")
        problem = OSError(f"{name} has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM):
            if not self._is_meant(name, str(address[0])):
                raise Denied(f"the host {name!r} has the private address {address[0]}; a policy names such an address itself")
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

    def _is_meant(self, name: str, address: str) -> bool:
        """Whether an address is public, or was written down in the policy as one."""
        found = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return (found.is_global and not found.is_multicast) or name == "localhost" or _is_address(name)

    def _kept(self, connection: socket.socket) -> _Kept:
        return _Kept(self._open, self._lock, connection)


class _Kept:
    """A connection that can be shut down from outside while it is in use."""

    def __init__(self, kept: set[socket.socket], lock: threading.Lock, connection: socket.socket) -> None:
        self._kept, self._lock, self._connection = kept, lock, connection

    def __enter__(self) -> None:
        with self._lock:
            self._kept.add(self._connection)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._kept.discard(self._connection)


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = client.recv(CHUNK_BYTES)
        if not chunk or len(data) > HEAD_BYTES:
            raise ConnectionError("no request")
        data += chunk
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _split(method: bytes, target: bytes) -> tuple[str, int]:
    text = target.decode("latin-1")
    try:
        parts = urlsplit(f"//{text}" if method == b"CONNECT" else text)
        host, port = parts.hostname, parts.port or (443 if method == b"CONNECT" else 80)
    except ValueError:
        host, port, parts = None, 0, urlsplit("")
    if not host or (method != b"CONNECT" and parts.scheme != "http"):
        raise Denied(f"{text[:200]!r} is no address that this proxy connects to")
    return host, port


def _matches(entry: str, host: str, port: int) -> bool:
    entry = entry.lower()
    name, colon, wanted = entry.rpartition(":") if not entry.startswith("[") or "]:" in entry else (entry, "", "")
    if not colon or not wanted.isdecimal():
        name, wanted = entry, ""
    name = name.strip("[]")
    if port not in ((int(wanted),) if wanted else USUAL_PORTS):
        return False
    return host.endswith(name[1:]) and len(host) > len(name) - 1 if name.startswith("*.") else host == name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _origin_form(head: bytes, target: bytes) -> bytes:
    """The request as the server wants it: without the host in its first line, and for one request only."""
    first, *fields = head.split(b"\r\n")
    method, _, version = first.split(b" ", 2)
    parts = urlsplit(target.decode("latin-1"))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [line for line in fields if not line.lower().startswith((b"proxy-", b"connection:", b"keep-alive:"))]
    return b"\r\n".join([b" ".join((method, path.encode("latin-1"), version)), *kept, b"Connection: close", b"", b""])


def _say(client: socket.socket, status: str, text: str) -> None:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    client.sendall(head.encode() + body)


def _relay(client: socket.socket, server: socket.socket) -> None:
    """Copy both ways until both sides have ended, or nothing moved for a while."""
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
