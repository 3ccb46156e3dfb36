"""Answers in plain text of routes with one address."""

from __future__ import annotations

from uncaged_engine.services.listening import Scope, Send

TEXT = "text/plain; charset=utf-8"


async def answer(scope: Scope, send: Send, status: int, text: str, *, kind: str = TEXT) -> None:
    """Send a text, which no cache keeps."""
    body = text.encode()
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


async def refuse(scope: Scope, send: Send, path: str) -> bool:
    """Refuse a request that is not a GET of *path*; return whether it was refused."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    elif scope["path"] != path:
        await answer(scope, send, 404, "no such address\n")
    elif scope["method"] not in ("GET", "HEAD"):
        await answer(scope, send, 405, "only GET is possible\n")
    else:
        return False
    return True
