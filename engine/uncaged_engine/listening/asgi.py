"""ASGI middleware of listeners: authentication of each request, and an event for a client's
disconnect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

import anyio

from .guard import Denial, Guard

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

GONE = "uncaged.gone"
"""Key in a request's scope of an ``anyio.Event`` that is set if the client disconnects before the
response is complete.
"""


def guarded(app: App, guard: Guard) -> App:
    """Return the application behind the guard. Only the server's lifespan messages pass
    unchecked.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        denied = guard.denial(scope["headers"])
        if denied is None and scope["type"] == "http":
            await watched(app, scope, receive, send)
        elif denied is None:
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await _deny(denied, send)

    return serve


async def watched(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a request with an event in its scope that is set at the client's disconnect.

    An application may not receive while it works, so messages are read here, one ahead of it, and
    passed on.
    """
    gone = anyio.Event()
    sender, receiver = anyio.create_memory_object_stream[Message](0)
    done = False

    async def pump() -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    if not done:
                        gone.set()
                    await sender.send(message)
                    return
                await sender.send(message)

    async def next_message() -> Message:
        try:
            return await receiver.receive()
        except anyio.EndOfStream:
            return {"type": "http.disconnect"}

    async def answer(message: Message) -> None:
        nonlocal done
        done = done or (
            message["type"] == "http.response.body" and not message.get("more_body", False)
        )
        await send(message)

    async with sender, receiver, anyio.create_task_group() as tasks:
        tasks.start_soon(pump)
        await app({**scope, GONE: gone}, next_message, answer)
        tasks.cancel_scope.cancel()


async def _deny(denied: Denial, send: Send) -> None:
    body = f"{denied.message}\n".encode()
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": str(len(body)),
        **denied.headers,
    }
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": denied.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
