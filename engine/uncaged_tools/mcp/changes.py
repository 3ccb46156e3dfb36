"""Watcher of the tool list: notifies MCP clients within a second of a flow that was added, changed,
disabled or removed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
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

    def __init__(self, registry: Path, enabled_tools: Callable[[], Sequence[FlowTool]]) -> None:
        """Args: registry: the file that changes with every flow. enabled_tools: returns the tools
        of this moment.
        """
        self._registry = registry
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
        seen, identities = (self._state(), None)
        while True:
            await anyio.sleep(PERIOD_S)
            state = self._state()
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

    def _state(self) -> tuple[int, int, int] | None:
        try:
            found = self._registry.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    async def _identities(self) -> list[tuple[str, str]] | None:
        """Return name and hash of each tool; None while the registry cannot be read."""
        try:
            return [
                (tool.name, tool.hash)
                for tool in await anyio.to_thread.run_sync(self._enabled_tools)
            ]
        except UncagedError:
            return None
