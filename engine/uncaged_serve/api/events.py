"""`/api/events`: changes of the list of threads as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator

from uncaged_engine.api import Engine
from uncaged_engine.services.shared_engine import SharedEngine

from ..live_list import live_list_of
from ..shared_list import shared_list_of
from .endpoints import Asked, EventStream, ServerEvent

TOO_SLOW = "this client read too slowly; connect again"


async def changes(engine: Engine, _: Asked) -> AsyncIterator[ServerEvent]:
    """Yield `ready`, then `thread`, `gone` and `reload`; `dropped` before the end of a client that
    did not keep up.
    """
    threads = shared_list_of(engine) if isinstance(engine, SharedEngine) else live_list_of(engine)
    async with threads.changes() as found:
        yield ServerEvent(kind="ready", data={})
        async for kind, document in found:
            yield ServerEvent(kind=kind, data=document)
        yield ServerEvent(kind="dropped", data={"message": TOO_SLOW})


EVENT_ENDPOINTS = (
    EventStream(
        path="/api/events",
        summary="Threads that appear, change their status, or do something else",
        handler=changes,
    ),
)
