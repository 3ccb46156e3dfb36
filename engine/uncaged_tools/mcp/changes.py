"""Watcher of the tool list: notifies MCP clients within a second of a flow that was added, changed,
disabled or removed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from uncaged_bundles.errors import UncagedError

from ..flows import FlowTool

PERIOD_S = 0.5


class ToolListWatcher:
    """Watches one registry for all clients of a server."""

    def __init__(
        self, state: Callable[[], object], enabled_tools: Callable[[], Sequence[FlowTool]]
    ) -> None:
        """Args: state: returns what changes with every flow. enabled_tools: returns the tools of
        this moment.
        """
        self._read_state = state
        self._enabled_tools = enabled_tools
        self._bus = InMemorySubscriptionBus()
        self._legacy_session: ServerSession | None = None
        self.listen = ListenHandler(self._bus)

    def remember(self, context: ServerRequestContext[Any, Any]) -> None:
        """Remember a client that listed the tools: over standard output, one of an older protocol
        is notified without a subscription.
        """
        if context.request is None and context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._legacy_session = context.session

    @asynccontextmanager
    async def watching(self, _server: object) -> AsyncIterator[dict[str, Any]]:
        """Notify clients while the block runs."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            yield {}
            tasks.cancel_scope.cancel()

    async def _watch(self) -> None:
        # the tools are not read before the first change, which is always sent
        seen, identities = (await self._state(), None)
        while True:
            await anyio.sleep(PERIOD_S)
            state = await self._state()
            if state == seen:
                continue
            seen, before = state, identities
            identities = await self._identities()
            if identities != before:
                await self._notify()

    async def _notify(self) -> None:
        await self._bus.publish(ToolsListChanged())
        if self._legacy_session is not None:
            await self._legacy_session.send_tool_list_changed()

    async def _state(self) -> object:
        try:
            return await anyio.to_thread.run_sync(self._read_state)
        except UncagedError:
            return None  # a shared store is away

    async def _identities(self) -> list[tuple[str, str]] | None:
        """Return name and hash of each tool; None while the registry cannot be read."""
        try:
            return [
                (tool.name, tool.hash)
                for tool in await anyio.to_thread.run_sync(self._enabled_tools)
            ]
        except UncagedError:
            return None
