"""Idle HTTP clients of a process, for reuse by requests under the same rules; a client serves one
exchange at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from uncaged_engine.door.effects import Cancel
from uncaged_engine.services.network import Lookup, Route, system_lookup

if TYPE_CHECKING:
    from uncaged_engine.services.stream import HttpClient

KEPT = 16
"""Idle clients of a process, each with at most a few connections."""


class Clients:
    """Idle clients by route. lookup: resolver of names."""

    def __init__(self, lookup: Lookup = system_lookup) -> None:
        self._lookup = lookup
        self._lock = threading.Lock()
        self._idle: list[tuple[Route, HttpClient]] = []

    @contextmanager
    def borrowed(self, route: Route, deadline_s: float, cancel: Cancel) -> Iterator[HttpClient]:
        """Yield a client for one exchange, which ends at the deadline or on cancellation. After an
        error the client is not used again.
        """
        client = self._take(route)
        try:
            with cancel.on_request(client.session.begin(deadline_s)):
                yield client
        except BaseException:
            client.close()
            raise
        client.session.end()
        self._give_back(route, client)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, client in idle:
            client.close()

    def _take(self, route: Route) -> HttpClient:
        with self._lock:
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index][0] == route:
                    return self._idle.pop(index)[1]
        from uncaged_engine.services.stream import HttpClient

        return HttpClient(route, self._lookup)

    def _give_back(self, route: Route, client: HttpClient) -> None:
        surplus = None
        with self._lock:
            if client.session.is_cut:
                surplus = client
            else:
                self._idle.append((route, client))
                if len(self._idle) > KEPT:
                    surplus = self._idle.pop(0)[1]
        if surplus is not None:
            surplus.close()


CLIENTS = Clients()
"""Idle clients of all threads of a worker."""
