"""Middleware of listeners: what an application gets of a guarded request."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from uncaged_engine.listening.asgi import Message, Receive, Scope, Send, guarded
from uncaged_engine.listening.guard import Guard

TOKEN = "t" * 43
HOST = (b"host", b"127.0.0.1:8811")
BEARER = (b"authorization", f"Bearer {TOKEN}".encode())
OFFERED = (b"sec-websocket-protocol", f"one, uncaged-token.{TOKEN}, two".encode())


def serve(scope: Scope) -> tuple[list[Scope], list[Message]]:
    """Serve one request; return the scope that the application got, if any, and what was sent."""
    scopes: list[Scope] = []
    sent: list[Message] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        scopes.append(scope)

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    anyio.run(guarded(app, Guard(token=TOKEN, port=8811)), scope, receive, send)
    return scopes, sent


def handshake(*headers: tuple[bytes, bytes], **more: Any) -> Scope:
    """Return the scope of a WebSocket handshake as the server makes it."""
    offers = [
        offer.strip()
        for name, value in headers
        if name == b"sec-websocket-protocol"
        for offer in value.decode().split(",")
    ]
    return {"type": "websocket", "headers": list(headers), "subprotocols": offers, **more}


@pytest.mark.parametrize(
    "scope",
    [
        {"type": "http", "path": "/", "headers": [HOST, BEARER]},
        handshake(HOST, BEARER),
        handshake(HOST, OFFERED),
    ],
)
def test_an_application_does_not_get_the_token(scope: Scope) -> None:
    """Neither headers nor subprotocols of the scope have the token; the other subprotocols stay."""
    [inner], sent = serve(scope)
    assert TOKEN not in repr(inner)
    assert sent == []
    if OFFERED in scope["headers"]:
        assert inner["subprotocols"] == ["one", "two"]
        assert (b"sec-websocket-protocol", b"one, two") in inner["headers"]


def test_a_refused_handshake_has_the_status_of_its_refusal() -> None:
    """The response to a handshake says why, where the server can send one; else the connection is
    closed, and the application does not hear of it.
    """
    scope = handshake(HOST, (b"origin", b"https://evil.example"), OFFERED)
    scopes, sent = serve({**scope, "extensions": {"websocket.http.response": {}}})
    assert scopes == []
    assert [message["type"] for message in sent] == [
        "websocket.http.response.start",
        "websocket.http.response.body",
    ]
    assert sent[0]["status"] == 403
    assert serve(scope) == ([], [{"type": "websocket.close", "code": 1008}])
