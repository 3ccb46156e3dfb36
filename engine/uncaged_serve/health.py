"""Route `/healthz`: whether the server can work with its store. It needs no token, and says nothing
else.
"""

from __future__ import annotations

import os

import anyio
import anyio.to_thread
from uncaged_bundles.errors import UncagedError
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import App, Receive, Scope, Send
from uncaged_engine.services.shared_engine import SharedEngine

from .plain_text import answer, refuse

PATH = "/healthz"
TIMEOUT_S = 5.0
"""A disk that hangs is not healthy."""


def is_health_path(path: str) -> bool:
    """Return whether an address is the route's own."""
    return path == PATH


def route(engine: Engine) -> App:
    """Return the application that answers 200 `ok`, or 503 `not ok`."""

    async def serve(scope: Scope, _receive: Receive, send: Send) -> None:
        if await refuse(scope, send, PATH):
            return
        healthy = False
        with anyio.move_on_after(TIMEOUT_S):
            healthy = await anyio.to_thread.run_sync(answers, engine, abandon_on_cancel=True)
        await answer(scope, send, 200 if healthy else 503, "ok\n" if healthy else "not ok\n")

    return serve


def answers(engine: Engine) -> bool:
    """Return whether this machine's directory can be used, and a shared store replies."""
    try:
        if isinstance(engine, SharedEngine):
            engine.submitted(None)
    except UncagedError:
        return False
    return is_usable(engine.store)


def is_usable(store: Store) -> bool:
    """Return whether the journals of a store can be listed, and its files written."""
    try:
        with os.scandir(store.logs):
            pass
        found = os.statvfs(store.root)
    except OSError:
        return False
    return (
        os.access(store.run, os.R_OK | os.W_OK | os.X_OK)
        and not found.f_flag & os.ST_RDONLY
        and found.f_bavail > 0
    )
