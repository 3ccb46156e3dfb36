"""The worker has one sandbox process for all its threads, and a new one whenever that dies.

`--die-with-parent` follows the operating-system *thread* that started the sandbox, not its process: so all are started by one thread
that lives as long as the worker.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from uncaged_bundles.validate import Bundle

from .cell import Cell, CellLimits
from .sandbox.mechanism import Mechanism


class Cells:
    """Hands out the shared cell, or one for a thread alone. mechanism: None only for a trusted bundle."""

    def __init__(self, bundle: Bundle, mechanism: Mechanism | None, limits: CellLimits) -> None:
        self.bundle = bundle
        self._mechanism = mechanism
        self._limits = limits
        self._spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")
        self._lock = threading.Lock()
        self._shared: Cell | None = None

    def shared(self) -> Cell:
        """The cell that lives now; started if there is none.

        Raises:
            SandboxUnavailable, BundleError: it cannot be started.
        """
        with self._lock:
            if self._shared is None or not self._shared.alive:
                if self._shared is not None:
                    self._shared.close()
                self._shared = self.alone()
            return self._shared

    def alone(self) -> Cell:
        """A cell of its own, for proving or for a thread that the shared one died with. The caller closes it."""
        return self._spawner.submit(Cell.start, self.bundle, self._mechanism, limits=self._limits).result()

    def close(self) -> None:
        with self._lock:
            if self._shared is not None:
                self._shared.close()
                self._shared = None
        self._spawner.shutdown()
