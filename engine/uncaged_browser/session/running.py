"""The browser of a session process, and its server."""

from __future__ import annotations

import asyncio
import os
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

from ..browsers.installed import find_browser
from ..browsers.launch import LaunchOptions, launched
from .address import profile_path, socket_path
from .contexts import SessionContexts, proxied
from .external import ExternalBrowser
from .messages import KEPT, ContextSpec
from .noting import PageNotes
from .server import SessionServer
from .starting import READY


class BrowserProcess:
    """One session; its settings are read when it is made."""

    def __init__(self, store: Store, name: str, *, shown: bool) -> None:
        self._store, self._name, self._shown = store, name, shown
        self._engine = Engine.open(store.root)
        self._settings = self._engine.config.browser
        self._program = find_browser(self._settings.program, os.environ)

    async def run(self, playwright: Playwright, ready: BinaryIO) -> None:
        """Start the browser, listen, and serve until the session ends. ready: the pipe that the
        starter waits for, which is closed then.
        """
        address, proxy, _ = proxied(ContextSpec(name=KEPT, hosts=("*",), private=True))
        browser = LaunchOptions(
            program=self._program,
            headless=not self._shown,
            sandbox=self._settings.sandbox,
            proxy=address,
        )
        with proxy:
            async with launched(
                playwright, browser, profile_path(self._store, self._name)
            ) as running:
                external = ExternalBrowser(playwright, self._store, self._settings.port)
                contexts = SessionContexts(
                    running.browser, running.kept, external, shown=self._shown
                )
                notes = PageNotes(self._store, lambda: self._engine.config.browser)
                server = SessionServer(contexts, partial(status_of, self._engine), notes=notes)
                running.browser.on("disconnected", lambda _: server.stop())
                try:
                    await serve(socket_path(self._store, self._name), server, ready)
                finally:  # a proxy that is left would keep the process alive
                    await contexts.aclose()


def status_of(engine: Engine, thread: str) -> str | None:
    """Return the status of a thread; None if it was removed, or if there is none of that name. The
    status of one that cannot be read now is ``unknown``.
    """
    try:
        journal = engine.store.journal_of(parse_thread_id(thread))
        if journal is None:
            return None
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
