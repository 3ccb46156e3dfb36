"""ASGI middleware of listeners: authentication of each request, and an event for a client's
disconnect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

import anyio

from .guard import Denial, Guard, is_token, subprotocols

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

GONE = "uncaged.gone"
"""Key in a request's scope of an ``anyio.Event`` that is set if the client disconnects before the
response is complete.
"""


def _nothing(_: str) -> bool:
    return False


def guarded(app: App, guard: Guard, *, is_public: Callable[[str], bool] = _nothing) -> App:
    """Return the application behind the guard. Only the server's lifespan messages pass
    unchecked; the application does not get the token.

    is_public: whether a path can be read without the token.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        websocket = scope["type"] == "websocket"
        public = not websocket and is_public(scope["path"])
        denied = guard.denial(scope["headers"], websocket=websocket, public=public)
        if denied is not None:
            await _deny(denied, scope, send)
        elif websocket:
            await app(_without_token(scope), receive, send)
        else:
            await watched(app, _without_token(scope), receive, send)

    return serve


def _without_token(scope: Scope) -> Scope:
    """Return a request's scope without the header and the subprotocol of the token."""
    headers = []
    for name, value in scope["headers"]:
        kept = value
        match name.lower():
            case b"authorization":
                continue
            case b"sec-websocket-protocol":
                kept = b", ".join(offer for offer in subprotocols(value) if not is_token(offer))
            case _:
                pass
        headers.append((name, kept))
    if "subprotocols" not in scope:
        return {**scope, "headers": headers}
    offered = [offer for offer in scope["subprotocols"] if not is_token(offer.encode("latin-1"))]
    return {**scope, "headers": headers, "subprotocols": offered}


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


async def _deny(denied: Denial, scope: Scope, send: Send) -> None:
    """Send the response of a refused request; of a handshake only its end, if the server cannot
    send more.
    """
    kind = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 1008})
            return
        kind = "websocket.http.response"
    body = f"{denied.message}\n".encode()
    headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Length": str(len(body)),
        **denied.headers,
    }
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": f"{kind}.start", "status": denied.status, "headers": encoded})
    await send({"type": f"{kind}.body", "body": body})
