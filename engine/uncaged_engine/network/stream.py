"""Network backend of httpcore2: streams over checked connections, which end at the session's
deadline and when it is cancelled.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

from .connection import CONNECT_S, Lookup, NetworkSession, connect
from .problems import WebProblem
from .rules import HostRules


class Backend(httpcore2.NetworkBackend):
    """Network backend of one client. rules: None for a server that the person configured."""

    def __init__(self, session: NetworkSession, rules: HostRules | None, lookup: Lookup) -> None:
        self._session = session
        self._rules = rules
        self._lookup = lookup

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002 - the protocol's signature
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the protocol's signature
    ) -> Stream:
        connection = connect(
            self._session,
            host,
            port,
            rules=self._rules,
            lookup=self._lookup,
            timeout_s=CONNECT_S if timeout is None else timeout,
        )
        return Stream(self._session, connection)


class Stream(httpcore2.NetworkStream):
    """Connection of a session. A timeout of the request holds besides the session's deadline."""

    def __init__(self, session: NetworkSession, connection: socket.socket) -> None:
        self._session = session
        self._socket = connection

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            self._socket.settimeout(self._session.wait_s(timeout))
            data = self._socket.recv(max_bytes)
        except TimeoutError as exc:
            self._session.left_s()
            raise httpcore2.ReadTimeout(f"no byte within {timeout:g} s") from exc
        except OSError as exc:
            self._session.left_s()
            raise httpcore2.ReadError(exc.strerror or str(exc)) from exc
        if not data:
            # a cancelled connection must not look like the end of the stream
            self._session.left_s()
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            view = memoryview(buffer)
            while view:
                self._socket.settimeout(self._session.wait_s(timeout))
                view = view[self._socket.send(view) :]
        except TimeoutError as exc:
            self._session.left_s()
            raise httpcore2.WriteTimeout(f"no byte taken within {timeout:g} s") from exc
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
        timeout: float | None = None,
    ) -> Stream:
        try:
            wait_s = self._session.wait_s(timeout)
            self._session.drop(self._socket)
            wrapped = ssl_context.wrap_socket(
                self._socket, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            self._socket = wrapped
            self._session.add(wrapped)
            wrapped.settimeout(wait_s)
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
