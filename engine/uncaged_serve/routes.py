"""Routes that packages and other distributions register as `uncaged_workflow.routes`. An entry is a
factory that takes the engine and returns an ASGI application, which serves the paths below its
name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from uncaged_bundles.errors import UncagedError
from uncaged_engine.api import Engine
from uncaged_engine.services import entry_points
from uncaged_engine.services.listening import App, Receive, Scope, Send

from .api.application import SESSION
from .api.endpoints import Session
from .api.errors import error_document

Factory = Callable[[Engine], App]
NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRoute:
    """ASGI application that serves `/NAME` and every path below it."""

    name: str
    app: App


def load_routes(engine: Engine) -> tuple[list[ServedRoute], list[str]]:
    """Return the registered routes, and a message for each that cannot be served."""
    routes, problems = [], []
    for name in entry_points.names(group=entry_points.ROUTES):
        try:
            routes.append(_load(name, engine))
        # code of another distribution, which may not keep the others from being served
        except Exception as exc:
            text = str(exc) if isinstance(exc, UncagedError) else f"{type(exc).__name__}: {exc}"
            problems.append(f"the route {name!r} is not served: {text}")
    return routes, problems


def _load(name: str, engine: Engine) -> ServedRoute:
    if not NAME.fullmatch(name):
        raise ValueError("its name is not lower-case letters, digits and '-'")
    factory = entry_points.find(name, group=entry_points.ROUTES)
    if not callable(factory):
        raise TypeError("its entry is not a function that takes the engine")
    app = cast("Factory", factory)(engine)
    if not callable(app):
        raise TypeError("its entry did not return an ASGI application")
    return ServedRoute(name=name, app=app)


def dispatching(routes: Sequence[ServedRoute], *, read_only: bool = False) -> App:
    """Return the application that passes each request to the route named first in its path; `/`
    is the route `page`.

    read_only: refuse what may change something, WebSockets included.
    """
    apps = {route.name: route.app for route in routes}
    session = Session(read_only=read_only, routes=tuple(sorted(apps)))

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].split("/")[1] if scope["path"].startswith("/") else ""
        app = apps.get(name or "page")
        if app is None or (read_only and scope["type"] == "websocket"):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            message = f"no route {name!r}; there are: {', '.join(sorted(apps))}"
            await _send_json(send, 404, error_document("not-found", message))
        elif read_only and scope["method"] not in ("GET", "HEAD"):
            message = "this server only reads: it was started with --read-only"
            await _send_json(send, 403, error_document("read-only", message))
        else:
            await app({**scope, SESSION: session}, receive, send)

    return serve


async def _send_json(send: Send, status: int, document: object) -> None:
    body = json.dumps(document).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
