"""The server speaks over standard input and output, or over HTTP on loopback to whoever is on this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from uncaged_bundles.errors import UsageError

LOOPBACK = "127.0.0.1"
PATH = "/mcp"
GRACE_S = 2


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until it closes our standard input."""

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options(NotificationOptions(tools_changed=True)))

    anyio.run(serve)


def serve_http(server: Server[Any], port: int, ready: Callable[[str], None]) -> None:
    """Serve any number of clients until interrupted.

    Args:
        port: 0 takes a free one. ready: is told the address.
    Raises:
        UsageError: the port is taken.
    """
    try:
        listener = socket.create_server((LOOPBACK, port))
    except OSError as exc:
        raise UsageError(f"port {port} cannot be served: {exc.strerror}; choose another, or 0 for a free one") from exc
    app = server.streamable_http_app(streamable_http_path=PATH, host=LOOPBACK)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_S)
    with listener:
        ready(f"http://{LOOPBACK}:{listener.getsockname()[1]}{PATH}")
        uvicorn.Server(config).run(sockets=[listener])
