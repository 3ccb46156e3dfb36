"""HTTP client over one route: a connection pool of httpcore2 on our own network backend.

Errors of the library are raised as `WebProblem`.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote, urlsplit

import httpcore2

from .connection import Lookup, NetworkSession, system_lookup
from .problems import BrokenReply, NoReply, ProxyRefused, StaleConnection
from .route import Route
from .stream import Backend

CONNECTIONS = 4
IDLE_S = 4.0
"""Shorter than servers usually keep an idle connection, so that this side closes it first."""

NETWORK_ERRORS = (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException)


class HttpClient:
    """HTTP client of one exchange at a time, which its session bounds."""

    def __init__(self, route: Route, lookup: Lookup = system_lookup) -> None:
        self.session = NetworkSession()
        self._pool = httpcore2.ConnectionPool(
            ssl_context=_certificates(route) if route.secure else None,
            proxy=_proxy(route),
            max_connections=CONNECTIONS,
            keepalive_expiry=IDLE_S,
            # the names behind a proxy are looked up by the proxy
            network_backend=Backend(self.session, None if route.proxy else route.rules, lookup),
        )

    def send(self, request: httpcore2.Request) -> httpcore2.Response:
        """Send *request* and read the head of its reply.

        Raises:
            WebProblem: no connection, or `NoReply`. RequestCancelled.
        """
        try:
            return self._pool.handle_request(request)
        except httpcore2.ProxyError as exc:
            raise ProxyRefused(authority(request), str(exc)) from exc
        except NETWORK_ERRORS as exc:
            problem = NoReply if self.session.has_connected else StaleConnection
            raise problem(authority(request), str(exc)) from exc

    def content(self, request: httpcore2.Request, response: httpcore2.Response) -> Iterator[bytes]:
        """Yield the body of the reply to *request*; raises `BrokenReply` if it breaks off."""
        try:
            yield from response.iter_stream()
        except NETWORK_ERRORS as exc:
            raise BrokenReply(authority(request), str(exc)) from exc

    def close(self) -> None:
        self._pool.close()


def authority(request: httpcore2.Request) -> str:
    """Return the host of a request as its Host header names it."""
    return next(value.decode() for name, value in request.headers if name.lower() == b"host")


def _certificates(route: Route) -> ssl.SSLContext:
    return _read_certificates(route.ca_file, route.ca_directory)


@lru_cache(maxsize=8)
def _read_certificates(file: str | None, directory: str | None) -> ssl.SSLContext:
    """Read certificates once: those of the system take longer than a request."""
    if file or directory:
        return ssl.create_default_context(cafile=file, capath=directory)
    import httpx2

    # not those that this process's variables name
    return httpx2.create_ssl_context(trust_env=False)


def _proxy(route: Route) -> httpcore2.Proxy | None:
    if route.proxy is None:
        return None
    parts = urlsplit(route.proxy)
    url = httpcore2.URL(scheme=parts.scheme, host=parts.hostname or "", port=parts.port, target="/")
    return httpcore2.Proxy(
        url,
        auth=(unquote(parts.username), unquote(parts.password or "")) if parts.username else None,
        ssl_context=_certificates(route) if parts.scheme == "https" else None,
    )
