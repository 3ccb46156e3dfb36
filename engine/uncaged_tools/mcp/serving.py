"""Transports of the MCP server: standard input and output, or HTTP on loopback for clients with the
store's token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import LOOPBACK, App, Guard, guarded, listen

from .server import make_server

PATH = "/mcp"
GRACE_S = 2


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until it closes our standard input."""

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(
                read,
                write,
                server.create_initialization_options(NotificationOptions(tools_changed=True)),
            )

    anyio.run(serve)


def serve_http(server: Server[Any], port: int, token: str, ready: Callable[[str], None]) -> None:
    """Serve any number of clients until interrupted.

    Args:
        port: 0 takes a free one. token: what each request must bring. ready: is called with the
            address.
    Raises:
        UsageError: the port is taken.
    """
    listener = listen(port)
    app = _http_app(server)
    port = listener.getsockname()[1]
    config = uvicorn.Config(
        guarded(app, Guard(token=token, port=port)),
        log_level="warning",
        timeout_graceful_shutdown=GRACE_S,
    )
    with listener:
        ready(f"http://{LOOPBACK}:{port}{PATH}")
        uvicorn.Server(config).run(sockets=[listener])


def route(engine: Engine) -> App:
    """Return the application that serves all enabled flows at `PATH`, for a server of several
    routes.
    """
    return _http_app(make_server(engine))


def _http_app(server: Server[Any]) -> App:
    app: App = server.streamable_http_app(streamable_http_path=PATH, host=LOOPBACK)
    return app
