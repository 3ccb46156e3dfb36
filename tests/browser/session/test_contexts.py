"""Contexts of a browser session."""

from __future__ import annotations

import asyncio
import socket

import pytest
from uncaged_browser.operations import Operation
from uncaged_browser.scope import EVERYWHERE, BrowserScope
from uncaged_browser.secrets import NO_BOUND_SECRETS, BoundSecrets
from uncaged_browser.session.contexts import ContextServer, proxied
from uncaged_browser.session.messages import ContextSpec


class LostBrowser:
    """Control of a browser that was killed."""

    async def perform(
        self,
        operation: Operation,
        secrets: BoundSecrets = NO_BOUND_SECRETS,
        scope: BrowserScope = EVERYWHERE,
    ) -> object:
        raise ConnectionError(operation, secrets, scope)

    async def aclose(self) -> None:
        raise ConnectionError("the browser is gone")


def test_a_context_ends_its_proxy_also_if_the_browser_is_gone() -> None:
    """The proxy of a context whose browser was killed: its thread would keep the session's process
    for ever.
    """
    address, proxy, refused = proxied(ContextSpec(name="t", hosts=("a.test",)))
    port = int(address.rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), 5).close()
    with pytest.raises(ConnectionError):
        asyncio.run(ContextServer(LostBrowser(), proxy, refused).aclose())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)
