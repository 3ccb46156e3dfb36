"""Clients hear that the list of tools is another one, each as its version of the protocol has
it.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from testbed.bundles import granted, source
from uncaged_engine.api import Engine

from .conftest import environment, http_server, with_token

pytestmark = pytest.mark.slow

NEW = source("brand-new", '\n    yield {"null": {}}\n', parameters={})
PATIENCE_S = 60


def stdio(engine: Engine) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "uncaged_cli", "mcp"], env=environment(engine)
    )


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def heard_by_listening(client: Client, engine: Engine) -> None:
    """A new flow, and one that is disabled, are changes; a thread is none."""
    assert "brand-new" not in await names(client)
    async with client.listen(tools_list_changed=True) as events:
        with anyio.fail_after(PATIENCE_S):
            await anyio.to_thread.run_sync(granted, engine.store, NEW)
            await anext(events)
            assert "brand-new" in await names(client)
            await anyio.to_thread.run_sync(
                lambda: engine.registry.set_enabled("brand-new", enabled=False)
            )
            await anext(events)
            assert "brand-new" not in await names(client)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_subscribed_client_is_notified(filled: Engine, transport: str) -> None:
    """Over both transports."""

    async def talk(target: StdioServerParameters | str) -> None:
        if isinstance(target, str):
            async with (
                with_token(filled) as http,
                Client(streamable_http_client(target, http_client=http)) as client,
            ):
                await heard_by_listening(client, filled)
            return
        async with Client(target) as client:
            await heard_by_listening(client, filled)

    if transport == "stdio":
        anyio.run(talk, stdio(filled))
    else:
        with http_server(filled) as url:
            anyio.run(talk, url)


def test_an_older_client_is_notified_without_a_subscription(filled: Engine) -> None:
    """The handshake with an older client announces the notification."""

    async def talk() -> None:
        told = anyio.Event()

        async def hear(message: Any) -> None:
            if isinstance(message, types.ToolListChangedNotification):
                told.set()

        async with Client(stdio(filled), mode="legacy", message_handler=hear) as client:
            capabilities = client.server_capabilities
            assert capabilities is not None
            assert capabilities.tools is not None
            assert capabilities.tools.list_changed
            assert "brand-new" not in await names(client)
            await anyio.to_thread.run_sync(granted, filled.store, NEW)
            with anyio.fail_after(PATIENCE_S):
                await told.wait()
            assert "brand-new" in await names(client)

    anyio.run(talk)
