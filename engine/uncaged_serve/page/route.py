"""Route of the page's files. They hold no secret and are served without the token."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from uncaged_engine.api import Engine
from uncaged_engine.services.listening import App, Receive, Scope, Send

FOLDER = Path(__file__).parent
KINDS = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
SIDE_PANEL = "chrome-extension://ikepkhfgaepnklhfgcogfkidpkcpnohl"
"""The browser extension, which alone may show the page in a frame. Its key gives this id."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    f"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors {SIDE_PANEL}"
)
HEADERS = (
    (b"cache-control", b"no-cache"),
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """File of the page. tag: its ETag."""

    data: bytes
    kind: bytes
    tag: bytes


def page_files() -> Mapping[str, PageFile]:
    """Return the files by their paths in the address; ``/`` is the page itself. A request can
    only name one of these.
    """
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in KINDS and path.is_file():
            data = path.read_bytes()
            tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'.encode()
            name = f"/page/{path.relative_to(FOLDER).as_posix()}"
            found[name] = PageFile(data=data, kind=KINDS[path.suffix], tag=tag)
    return {"/": found["/page/index.html"], **found}


def is_page_path(path: str) -> bool:
    """Return whether an address is one of the page's."""
    return path == "/" or path.startswith("/page/")


def route(_: Engine) -> App:
    """Return the application that serves the page at `/` and its files below `/page`."""
    files = page_files()

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
        file = files.get(scope["path"])
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["method"] not in ("GET", "HEAD"):
            await _send(send, 405, b"", ((b"allow", b"GET, HEAD"),))
        elif file is None:
            await _send(send, 404, b"no such file\n", ((b"content-type", b"text/plain"),))
        else:
            known = dict(scope["headers"]).get(b"if-none-match") == file.tag
            body = b"" if known or scope["method"] == "HEAD" else file.data
            headers = ((b"content-type", file.kind), (b"etag", file.tag))
            await _send(send, 304 if known else 200, body, headers)

    return serve


async def _send(
    send: Send, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    length = (b"content-length", str(len(body)).encode())
    every = [*HEADERS, *headers, *(() if status == 304 else (length,))]
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": body})
