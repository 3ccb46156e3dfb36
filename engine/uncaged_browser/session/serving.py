"""What a session serves once its browser runs."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from pathlib import Path
from typing import BinaryIO

from playwright.async_api import Playwright
from uncaged_bundles.errors import NotFoundError, UncagedError, UsageError
from uncaged_bundles.ids import parse_thread_id
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.children import Engine
from uncaged_engine.services.journal import is_live
from uncaged_engine.services.local_sockets import listen
from uncaged_engine.services.trials import is_driven_in_scratch

from ..browsers.launch import LaunchedBrowser
from .address import socket_path
from .contexts import SessionContexts
from .external import ExternalBrowser
from .noting import PageNotes
from .server import SessionServer
from .starting import READY

__all__ = ["serve_browser", "status_of"]


async def serve_browser(
    playwright: Playwright,
    running: LaunchedBrowser,
    ready: BinaryIO,
    *,
    store: Store,
    name: str,
    shown: bool,
) -> None:
    """Listen, and serve a browser until the session ends. ready: as for `BrowserProcess.run`."""
    engine = Engine(store)
    external = ExternalBrowser(
        playwright, store, engine.config.browser.port, lambda: engine.config.serve_port
    )
    contexts = SessionContexts(running.browser, running.kept, external, shown=shown)
    notes = PageNotes(store, lambda: engine.config.browser)
    server = SessionServer(contexts, partial(status_of, engine), notes=notes)
    running.browser.on("disconnected", lambda _: server.stop())
    try:
        await serve(socket_path(store, name), server, ready)
    finally:  # a proxy that is left would keep the process alive
        await contexts.aclose()


def status_of(engine: Engine, thread: str) -> str | None:
    """Return the status of a thread; None if it was removed, or if there is none of that name. The
    status of one that cannot be read now is ``unknown``.
    """
    try:
        thread_id = parse_thread_id(thread)
        journal = engine.store.journal_of(thread_id)
        if journal is None:
            return "running" if is_driven_in_scratch(engine.store, thread_id) else None
        return "running" if is_live(journal) else engine.thread(thread).summary.status
    except (NotFoundError, UsageError):
        return None
    except (UncagedError, OSError):
        return "unknown"


async def serve(path: Path, server: SessionServer, ready: BinaryIO) -> None:
    """Listen at the session's socket, report that to the starter, and serve."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    listener = listen(path)
    try:
        with ready:
            ready.write(READY)
        await server.serve(listener)
    finally:
        path.unlink(missing_ok=True)
