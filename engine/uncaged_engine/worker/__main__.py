"""`python -m uncaged_engine.worker STORE HASH READY_FD`: become the worker of one bundle, or leave at once if there is one."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import BundleHash, parse_bundle_hash
from uncaged_bundles.storage.store import Store

from . import address

if TYPE_CHECKING:
    from .server import Begun

LINGER_S = 1.0
MAX_FILES = 16_384


def main(arguments: list[str]) -> int:
    """Returns: 0 when done, 75 if another worker is there."""
    store, bundle, ready_fd = Store.open(Path(arguments[0])), parse_bundle_hash(arguments[1]), int(arguments[2])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores it, and children would inherit that
    lock = os.open(address.lock_path(store, bundle), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(ready_fd)
        return 75
    clear_report(store, bundle)
    allow_files()
    begun = begin_cell(store, bundle)
    if any(store.lent.glob("*.json")):
        from ..scripting.lending import give_back_all  # only after a crash

        give_back_all(store.lent)
    from .server import Server  # while the sandbox starts

    def ready() -> None:
        with suppress(BrokenPipeError):  # whoever started us is gone; others may come
            os.write(ready_fd, b"1")
        os.close(ready_fd)

    server = Server(store=store, bundle=bundle, linger_s=LINGER_S, clock_ms=lambda: time.time_ns() // 1_000_000, begun=begun)
    server.serve(ready)
    return 0


def clear_report(store: Store, bundle: BundleHash) -> None:
    """What an earlier worker printed is not about this one, and a caller that has to wait would take it for that."""
    with suppress(OSError):
        if os.path.samestat(os.fstat(2), address.report_path(store, bundle).stat()):
            os.ftruncate(2, 0)


def allow_files() -> None:
    """Each live thread keeps its journal open, and the usual thousand files would be too few for a thousand threads."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


def begin_cell(store: Store, bundle: BundleHash) -> Begun | None:
    """Start a sandbox process for a bundle that cannot be a trusted one; what is in the way is told to whoever asks for a thread."""
    from ..cells.cell import Cell, CellLimits
    from ..sandbox.mechanism import assume
    from ..settings.loading import load

    try:
        if b"trusted" in store.bundle_path(bundle).read_bytes():
            return None
        mechanism = assume(load(store).sandbox)
        return None if mechanism is None else (Cell.spawn(mechanism, limits=CellLimits()), mechanism)
    except (UncagedError, OSError):
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
