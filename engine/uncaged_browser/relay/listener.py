"""Listener for the extension: a WebSocket on one port of loopback.

A connection needs the extension's origin, this listener as its host, and the proof that it knows
the pairing code or its token; any other gets an empty refusal.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from uncaged_bundles import shapes
from uncaged_engine.services.listening import listen

from .link import ExtensionLink
from .pairing import Pairings, proof
from .panel import PanelContent

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.http11 import Request, Response

__all__ = ["EXTENSION_ID", "ExtensionListener", "prompt_socket", "quiet_logger"]

EXTENSION_ID = "ikepkhfgaepnklhfgcogfkidpkcpnohl"
"""Follows from the key in the extension's manifest."""
PATH = "/extension"
PROTOCOL = 1
REFUSED = 4003
HANDSHAKE_S = 10.0
KEEP_ALIVE_S = 20.0
MAX_HANDSHAKES = 16
MAX_MESSAGE_BYTES = 64 << 20
MAX_ID_CHARACTERS = 100


def quiet_logger() -> logging.Logger:
    """Return a logger that drops what strangers on the port would write to it."""
    logger = logging.getLogger("uncaged_browser.relay")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def prompt_socket(port: int) -> socket.socket:
    """Return a listening socket whose connections send at once. asyncio does not set that for this
    kind of socket, and small messages would wait 40 ms for an acknowledgement.
    """
    opened = listen(port)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


class ExtensionListener:
    """Accepts extensions on a port. on_change: called when one comes or goes."""

    def __init__(
        self,
        pairings: Pairings,
        on_change: Callable[[], None] = lambda: None,
        panel: PanelContent | None = None,
    ) -> None:
        """Args: panel: what the side panel of each extension shows."""
        self.pairings = pairings
        self._panel = panel
        self.port = 0
        self._on_change = on_change
        self._links: dict[str, ExtensionLink] = {}
        self._arrived = asyncio.Event()
        self._handshakes = 0
        self._server: Server | None = None

    @property
    def link(self) -> ExtensionLink | None:
        """Return the extension that connected last and still is."""
        return next((link for link in reversed(self._links.values()) if link.is_open), None)

    async def start(self, port: int) -> None:
        """Listen on a port; 0 takes a free one.

        Raises:
            UsageError: the port is taken.
        """
        from websockets.asyncio.server import serve

        opened = prompt_socket(port)
        self.port = opened.getsockname()[1]
        self._server = await serve(
            self._accept,
            sock=opened,
            process_request=self._check,
            max_size=MAX_MESSAGE_BYTES,
            compression=None,
            ping_interval=KEEP_ALIVE_S,
            ping_timeout=KEEP_ALIVE_S,
            server_header=None,
            logger=quiet_logger(),
        )

    async def wait_link(self, timeout_s: float) -> ExtensionLink | None:
        """Return the connected extension; wait for one, but not longer than *timeout_s*."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.link is None:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return None
        return self.link

    async def aclose(self) -> None:
        """Close the connections and stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        headers = request.headers
        hosts = (f"127.0.0.1:{self.port}", f"localhost:{self.port}")
        if (
            headers.get_all("Origin") == [f"chrome-extension://{EXTENSION_ID}"]
            and len(headers.get_all("Host")) == 1
            and headers["Host"] in hosts
            and request.path == PATH
            and self._handshakes < MAX_HANDSHAKES
        ):
            return None
        return connection.respond(HTTPStatus.FORBIDDEN, "")

    async def _accept(self, connection: ServerConnection) -> None:
        self._handshakes += 1
        try:
            link = await self._handshake(connection)
        finally:
            self._handshakes -= 1
        if link is None:
            await connection.close(REFUSED, "refused")
            return
        before = self._links.pop(link.client, None)
        self._links[link.client] = link
        closing = None if before is None else asyncio.create_task(before.replace())
        self._arrived.set()
        self._on_change()
        try:
            await link.serve()
        finally:
            if self._links.get(link.client) is link:
                del self._links[link.client]
            self._on_change()
            if closing is not None:
                await closing

    async def _handshake(self, connection: ServerConnection) -> ExtensionLink | None:
        """Return the extension behind a connection once both sides have proved themselves."""
        from websockets.exceptions import ConnectionClosed

        nonce = secrets.token_urlsafe(32)
        welcome = {"product": "uncaged-workflow", "protocol": PROTOCOL, "nonce": nonce}
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                await connection.send(json.dumps({"welcome": welcome}))
                hello = _read_hello(await connection.recv())
                key = self.pairings.key(hello["kind"], hello["client"])
                theirs = proof(key or "", "extension", nonce, hello["nonce"], hello["client"])
                if not hmac.compare_digest(theirs.encode(), hello["proof"].encode()) or key is None:
                    return None
                ours = proof(key, "engine", hello["nonce"], nonce, hello["client"])
                token = self.pairings.pair(hello["client"]) if hello["kind"] == "code" else None
                reply = {"proof": ours, **({} if token is None else {"token": token})}
                await connection.send(json.dumps({"accepted": reply}))
        except (TimeoutError, ConnectionClosed, ValueError, shapes.ShapeError):
            return None
        return ExtensionLink(
            connection,
            client=hello["client"],
            browser=hello["browser"],
            user_agent=hello["userAgent"],
            panel=self._panel,
        )


def _read_hello(text: str | bytes) -> dict[str, str]:
    message = shapes.mapping(json.loads(text), ("message",))
    hello: dict[str, Any] = shapes.mapping(message.get("hello"), ("hello",))
    if hello.get("protocol") != PROTOCOL:
        raise ValueError("another protocol")
    names = ("client", "browser", "kind", "nonce", "proof", "userAgent")
    found = {name: shapes.filled(hello.get(name), (name,)) for name in names}
    if any(len(found[name]) > MAX_ID_CHARACTERS for name in names if name != "userAgent"):
        raise ValueError("an id is too long")
    return found
