"""`python -m uncaged_browser.session STORE NAME SHOWN READY_FD`: become a browser session, or leave
at once if there is one.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from uncaged_bundles.errors import UncagedError, os_problem
from uncaged_bundles.storage.store import Store

from .address import lock_path, report_path
from .starting import ALREADY_RUNNING, NOT_READY

if TYPE_CHECKING:
    from .running import BrowserProcess


def main(arguments: list[str]) -> int:
    """Run the session. Returns: 0 when done, or if it is there already; 1 if it cannot start (the
    starter gets the reason).
    """
    store, name = Store.open(Path(arguments[0])), arguments[1]
    # the pipe itself ends with the process: a starter that reads its end finds a whole report
    ready = os.fdopen(int(arguments[3]), "wb", buffering=0, closefd=False)
    shown = arguments[2] == "shown"
    lock = os.open(lock_path(store, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with suppress(OSError):  # the starter may have been killed
            ready.write(ALREADY_RUNNING)
        return 0
    with suppress(FileNotFoundError):  # the report of the session before
        os.truncate(report_path(store, name), 0)
    try:
        asyncio.run(run(store, name, shown=shown, ready=ready))
    except (UncagedError, OSError) as exc:
        reason = os_problem(exc) if isinstance(exc, OSError) else str(exc)
        sys.stderr.write(f"{reason}\n")
        if not ready.closed:  # the starter still waits
            with suppress(OSError):
                ready.write(NOT_READY + reason.encode())
        return 1
    return 0


async def run(store: Store, name: str, *, shown: bool, ready: BinaryIO) -> None:
    """Run the session. Playwright's driver, a process of its own, starts while the rest of this
    program is imported.
    """
    from playwright.async_api import async_playwright

    starting = asyncio.create_task(async_playwright().start())
    try:
        process = await asyncio.to_thread(_prepared, store, name, shown=shown)
    finally:
        playwright = await starting
    try:
        await process.run(playwright, ready)
    finally:
        await playwright.stop()


def _prepared(store: Store, name: str, *, shown: bool) -> BrowserProcess:
    from .running import BrowserProcess  # 0.2 s of CPU

    return BrowserProcess(store, name, shown=shown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
