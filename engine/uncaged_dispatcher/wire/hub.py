"""Conversations that clients of this process use at present, each with one link for all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from uncaged_bundles.errors import RefusedError
from uncaged_engine.api import Engine

from ..conversations.execution import Interpret
from .link import ConversationLink

MAX_CONVERSATIONS = 64
DRAIN_S = 28.0
"""Less than the time that the server gives a route, so that clients get the last records."""


def clock_ms() -> int:
    """Return the time of the records."""
    return time.time_ns() // 1_000_000


class ConversationHub:
    """Links by conversation. A link without users is closed as soon as nothing is left to do."""

    def __init__(
        self, engine: Engine, interpret: Callable[[], Interpret], drain_s: float = DRAIN_S
    ) -> None:
        self.engine = engine
        self.is_stopping = False
        self._interpret, self._drain_s = interpret, drain_s
        self._links: dict[str, ConversationLink] = {}

    def find(self, id: str) -> ConversationLink | None:
        """Return the link of a conversation that is in use."""
        return self._links.get(id)

    @asynccontextmanager
    async def using(self, id: str) -> AsyncIterator[ConversationLink]:
        """Keep a conversation connected while the block runs.

        Raises:
            RefusedError: too many are in use, or the server is stopping.
        """
        if id not in self._links and len(self._links) >= MAX_CONVERSATIONS:
            await self._close_idle()
        # nothing is awaited from here on: there is one link of a conversation
        link = self._links.get(id)
        if link is None:
            if self.is_stopping:
                raise RefusedError("server_stopping: the server is stopping; try again later")
            if len(self._links) >= MAX_CONVERSATIONS:
                raise RefusedError(f"{MAX_CONVERSATIONS} conversations are in use; try again later")
            link = self._links[id] = ConversationLink(self.engine, id, self._interpret, clock_ms)
        link.users += 1
        try:
            yield link
        finally:
            link.users -= 1

    async def tidy(self, period_s: float) -> None:
        """Close idle links from time to time, until cancelled."""
        while True:
            await asyncio.sleep(period_s)
            await self._close_idle()

    async def drain(self) -> None:
        """Refuse new requests, finish those that are there, and leave all conversations."""
        self.is_stopping = True
        links = list(self._links.values())
        await asyncio.gather(*(link.drain(self._drain_s) for link in links))
        self._links.clear()

    async def _close_idle(self) -> None:
        idle = [id for id, link in self._links.items() if link.is_idle]
        links = [self._links.pop(id) for id in idle]
        await asyncio.gather(*(link.close() for link in links))
