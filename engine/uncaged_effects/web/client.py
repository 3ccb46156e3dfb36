"""Connections are kept and used again, but only by requests under the same rules, and by one
exchange at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from uncaged_engine.door.effects import Cancel
from uncaged_engine.services.network import HostRules

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    import httpcore2
    from uncaged_engine.services.stream import Lookup

KEPT = 16
"""Idle clients of a process, each with at most a few connections."""
CONNECTIONS = 4
IDLE_S = 4.0
"""Shorter than servers usually keep a connection, so that it is ours to end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a server is reached. secure: over TLS. proxy: the address of one. ca_file, ca_directory:
    the caller's certificates.
    """

    rules: HostRules
    secure: bool
    proxy: str | None
    ca_file: str | None
    ca_directory: str | None


class Client:
    """One connection pool. cut: ends what its exchange is waiting for."""

    def __init__(self, way: Way, lookup: Lookup) -> None:
        import httpcore2
        from uncaged_engine.services.stream import Backend, NetworkSession

        self.session = NetworkSession()
        backend = Backend(self.session, None if way.proxy else way.rules, lookup)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=_certificates(way.ca_file, way.ca_directory) if way.secure else None,
            proxy=_proxy(way.proxy),
            max_connections=CONNECTIONS,
            keepalive_expiry=IDLE_S,
            network_backend=backend,
        )

    def send(self, request: httpcore2.Request) -> httpcore2.Response:
        return self._pool.handle_request(request)

    def close(self) -> None:
        self._pool.close()


class Clients:
    """The idle clients of a process. lookup: how names become addresses; None is the machine's own
    way.
    """

    def __init__(self, lookup: Callable[[str, int], Sequence[str]] | None = None) -> None:
        self._lookup = lookup
        self._lock = threading.Lock()
        self._idle: list[tuple[Way, Client]] = []

    @contextmanager
    def borrowed(self, way: Way, deadline_s: float, cancel: Cancel) -> Iterator[Client]:
        """A client for one exchange, which ends at the deadline and when cancelled; whatever went
        wrong, it is not used again.
        """
        client = self._take(way)
        try:
            with cancel.on_request(client.session.begin(deadline_s)):
                yield client
        except BaseException:
            client.close()
            raise
        client.session.end()
        self._give_back(way, client)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, client in idle:
            client.close()

    def _take(self, way: Way) -> Client:
        with self._lock:
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index][0] == way:
                    return self._idle.pop(index)[1]
        from uncaged_engine.services.stream import system_lookup

        return Client(way, self._lookup or system_lookup)

    def _give_back(self, way: Way, client: Client) -> None:
        surplus = None
        with self._lock:
            if client.session.is_cut:
                surplus = client
            else:
                self._idle.append((way, client))
                if len(self._idle) > KEPT:
                    surplus = self._idle.pop(0)[1]
        if surplus is not None:
            surplus.close()


CLIENTS = Clients()
"""One for all threads of a worker."""


@lru_cache(maxsize=8)
def _certificates(file: str | None, directory: str | None) -> ssl.SSLContext:
    """Reading the system's certificates takes longer than a request, so it happens once."""
    import ssl

    import httpcore2

    return (
        ssl.create_default_context(cafile=file, capath=directory)
        if file or directory
        else httpcore2.default_ssl_context()
    )


def _proxy(address: str | None) -> httpcore2.Proxy | None:
    if address is None:
        return None
    from urllib.parse import unquote, urlsplit

    import httpcore2

    parts = urlsplit(address)
    url = httpcore2.URL(scheme=parts.scheme, host=parts.hostname or "", port=parts.port, target="/")
    return httpcore2.Proxy(
        url,
        auth=(unquote(parts.username), unquote(parts.password or "")) if parts.username else None,
    )
