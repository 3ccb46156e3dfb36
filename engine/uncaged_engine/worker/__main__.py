"""`python -m uncaged_engine.worker STORE HASH READY_FD`: become the worker of one bundle, or leave
at once if there is one.
"""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.errors import StorageError, UncagedError, os_problem
from uncaged_bundles.ids import BundleHash, parse_bundle_hash
from uncaged_bundles.storage.store import Store

from . import address

if TYPE_CHECKING:
    from ..cells.cell import CellLimits
    from .server import Begun

LINGER_S = 1.0
MAX_FILES = 16_384


def main(arguments: list[str]) -> int:
    """Run the worker. Returns: 0 when done, 1 if it cannot start (the starter gets the reason), 75
    if another worker is there.
    """
    report = Report(int(arguments[2]))
    try:
        store, bundle = Store.open(Path(arguments[0])), parse_bundle_hash(arguments[1])
        return work(store, bundle, report)
    except (UncagedError, OSError) as exc:
        if report.is_given:
            raise  # it had listened: a bug
        report.give(
            address.NOT_READY + (os_problem(exc) if isinstance(exc, OSError) else str(exc)).encode()
        )
        return 1


def work(store: Store, bundle: BundleHash, report: Report) -> int:
    """Become the bundle's worker, if there is none, and serve until it is idle."""
    # a shell's background job ignores it, and children would inherit that
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    place = address.lock_path(store, bundle)
    lock = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        report.give(b"")
        return 75
    except OSError as exc:
        raise StorageError(os_problem(exc, place)) from exc
    clear_report(store, bundle)
    allow_files()
    # modules are no garbage, and looking for some takes a tenth of the time of importing them
    gc.disable()
    # not at the top: a second worker of the bundle leaves without it
    from ..cells.cell import CellLimits

    limits = CellLimits()
    begun = begin_cell(store, bundle, limits)
    if any(store.lent.glob("*.json")):
        from uncaged_engine.sandbox.ownership import restore_owners  # only after a crash

        restore_owners(store.lent)
    from .server import WorkerServer  # while the sandbox starts

    # modules stay for good: later collections need not look at them
    gc.freeze()
    gc.enable()

    server = WorkerServer(
        store=store,
        bundle=bundle,
        linger_s=LINGER_S,
        clock_ms=lambda: time.time_ns() // 1_000_000,
        limits=limits,
        begun=begun,
        release=lambda: fcntl.flock(lock, fcntl.LOCK_UN),
    )
    server.serve(lambda: report.give(address.READY))
    return 0


class Report:
    """Pipe to the process that started the worker. Its message: listening, another worker is, or
    the reason why not.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @property
    def is_given(self) -> bool:
        return self._fd < 0

    def give(self, words: bytes) -> None:
        with suppress(OSError):  # the starter is gone; other clients may connect
            os.write(self._fd, words[: select.PIPE_BUF])
        os.close(self._fd)
        self._fd = -1


def clear_report(store: Store, bundle: BundleHash) -> None:
    """Empty the error report of an earlier worker, which a waiting client would take for ours."""
    with suppress(OSError):
        if os.path.samestat(os.fstat(2), address.report_path(store, bundle).stat()):
            os.ftruncate(2, 0)


def allow_files() -> None:
    """Raise the limit of open files: each live thread keeps its journal open, and a thousand files
    are too few for a thousand threads.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))


def begin_cell(store: Store, bundle: BundleHash, limits: CellLimits) -> Begun | None:
    """Start a sandbox process for an untrusted bundle; an error is ignored here, and the first
    request for a thread meets it again.
    """
    from ..cells.cell import Cell
    from ..sandbox.mechanism import assume
    from ..settings.loading import load

    try:
        if b"trusted" in store.bundle_path(bundle).read_bytes():
            return None
        mechanism = assume(load(store).sandbox)
        return None if mechanism is None else (Cell.spawn(mechanism, limits=limits), mechanism)
    except (UncagedError, OSError):
        return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
