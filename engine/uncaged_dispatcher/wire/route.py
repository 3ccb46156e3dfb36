"""Route `/dispatcher` of `uncaged-workflow serve`: the WebSocket of conversations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import App

from ..conversations.execution import Interpret
from ..conversations.reader import ConversationReader
from .hub import DRAIN_S, ConversationHub, clock_ms
from .peer import WRITE_S, WirePeer
from .readings import SentenceReadings

PATH = "/dispatcher"
SUBPROTOCOL = "uncaged-workflow"
MAX_CLIENTS = 64
TIDY_S = 5.0
TRY_AGAIN_LATER = 1013


def route(engine: Engine) -> App:
    """Return the application of a store's conversations, with the store's own rules."""
    return make_application(engine, lambda: ConversationReader(engine, clock_ms))


def make_application(
    engine: Engine,
    interpret: Callable[[], Interpret],
    *,
    path: str = PATH,
    write_s: float = WRITE_S,
    drain_s: float = DRAIN_S,
) -> Starlette:
    """Return the application of a store's conversations.

    Args:
        interpret: makes the reader of sentences of a conversation that this process holds.
        write_s: the time in which a client must read a message. drain_s: the time for requests at
            the server's end.
    """
    hub = ConversationHub(engine, interpret, drain_s)
    readings = SentenceReadings(engine)
    peers: set[WirePeer] = set()

    async def serve(websocket: WebSocket) -> None:
        offered = websocket.scope.get("subprotocols", [])
        await websocket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        if len(peers) >= MAX_CLIENTS:
            await websocket.close(TRY_AGAIN_LATER, f"{MAX_CLIENTS} clients are connected")
            return
        peer = WirePeer(websocket, hub, readings, write_s=write_s)
        peers.add(peer)
        try:
            await peer.serve()
        finally:
            peers.discard(peer)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        tidying = asyncio.create_task(hub.tidy(TIDY_S))
        try:
            yield
        finally:
            tidying.cancel()
            await hub.drain()
            # what the end of the requests put into the logs reaches the clients
            await asyncio.gather(*(peer.finish() for peer in peers))
            await readings.close()

    return Starlette(routes=[WebSocketRoute(path, serve)], lifespan=lifespan)
