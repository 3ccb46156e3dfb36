"""`python -m uncaged_browser.session STORE NAME SHOWN READY_FD`: become a browser session, or leave
at once if there is one.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
from functools import partial
from pathlib import Path

from uncaged_bundles.errors import NotFoundError, UncagedError, os_problem
from uncaged_bundles.ids import parse_thread_id
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.children import Engine
from uncaged_engine.services.journal import is_live
from uncaged_engine.services.local_sockets import listen

from ..browsers.installed import find_browser
from ..browsers.launch import LaunchOptions, launched
from .address import lock_path, profile_path, socket_path
from .contexts import SessionContexts, proxied
from .external import ExternalBrowser
from .messages import KEPT, ContextSpec
from .noting import PageNotes
from .server import SessionServer
from .starting import NOT_READY, READY

EXIT_TAKEN = 75


def main(arguments: list[str]) -> int:
    """Run the session. Returns: 0 when done, 1 if it cannot start (the starter gets the reason), 75
    if it is there already.
    """
    store, name = Store.open(Path(arguments[0])), arguments[1]
    shown, ready = arguments[2] == "shown", int(arguments[3])
    lock = os.open(lock_path(store, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return EXIT_TAKEN
    try:
        asyncio.run(run(store, name, shown=shown, ready=ready))
    except (UncagedError, OSError) as exc:
        reason = os_problem(exc) if isinstance(exc, OSError) else str(exc)
        os.write(ready, NOT_READY + reason.encode())
        return 1
    return 0


async def run(store: Store, name: str, *, shown: bool, ready: int) -> None:
    """Start the browser, listen, and serve until the session ends."""
    from playwright.async_api import async_playwright

    engine = Engine.open(store.root)
    settings = engine.config.browser
    spec = ContextSpec(name=KEPT, hosts=("*",), private=True)
    address, proxy, _ = proxied(spec)
    with proxy:
        async with async_playwright() as playwright:
            browser = LaunchOptions(
                program=find_browser(settings.program, os.environ),
                headless=not shown,
                sandbox=settings.sandbox,
                proxy=address,
            )
            async with launched(playwright, browser, profile_path(store, name)) as running:
                external = ExternalBrowser(playwright, store, settings.port)
                contexts = SessionContexts(running.browser, running.kept, external, shown=shown)
                notes = PageNotes(store, lambda: engine.config.browser)
                server = SessionServer(contexts, partial(status_of, engine), notes=notes)
                running.browser.on("disconnected", lambda _: server.stop())
                await serve(socket_path(store, name), server, ready)
                await contexts.aclose()


def status_of(engine: Engine, thread: str) -> str | None:
    """Return the status of a thread; None if it was removed."""
    try:
        journal = engine.store.journal_of(parse_thread_id(thread))
        if journal is None:
            return None
        return "running" if is_live(journal) else engine.thread(thread).summary.status
    except NotFoundError:
        return None


async def serve(path: Path, server: SessionServer, ready: int) -> None:
    """Listen at the session's socket, report that to the starter, and serve."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    listener = listen(path)
    try:
        os.write(ready, READY)
        os.close(ready)
        await server.serve(listener)
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
