"""Sandbox processes of a process that drives threads of several bundles."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from uncaged_bundles.ids import BundleHash

from ..cells.cell import CellLimits
from ..cells.shared import Cells, start_cells
from ..settings.loading import load
from .replica import Replica

MOST_IDLE = 4


class CellPool:
    """Sandbox processes by bundle, each shared by the threads that use it; a few idle ones are
    kept.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._lock = threading.Lock()
        self._cells: dict[BundleHash, Cells] = {}
        self._users: dict[BundleHash, int] = {}
        # processes end with the thread of execution that started them
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cells")

    @contextmanager
    def of(self, bundle: BundleHash) -> Iterator[Cells]:
        """Yield the processes of a bundle.

        Raises:
            UncagedError: the bundle is not granted, or no sandbox process can be started.
        """
        with self._lock:
            cells = self._cells.pop(bundle, None)
            if cells is None:
                cells = self._starter.submit(self._start, bundle).result()
            self._cells[bundle] = cells  # the last one used is the last one
            self._users[bundle] = self._users.get(bundle, 0) + 1
        try:
            yield cells
        finally:
            with self._lock:
                self._users[bundle] -= 1
                self._close_idle(MOST_IDLE)

    def close(self) -> None:
        """End all processes that no thread uses."""
        with self._lock:
            self._close_idle(0)
        self._starter.shutdown(wait=False)

    def _start(self, bundle: BundleHash) -> Cells:
        loaded = self._replica.bundle(bundle)
        prefer = load(self._replica.files).sandbox
        return start_cells(loaded, prefer, limits=CellLimits(), begun=None)

    def _close_idle(self, kept: int) -> None:
        idle = [bundle for bundle in self._cells if not self._users[bundle]]
        for bundle in idle[: max(0, len(idle) - kept)]:
            self._cells.pop(bundle).close()
