"""The worker has one sandbox process for all its threads, and a new one whenever that dies.

`--die-with-parent` follows the operating-system *thread* that started the sandbox, not its process. So all are started by threads that
live as long as the worker: the one that made this object, and one more once others need a cell.
"""

from __future__ import annotations

import threading
from math import ceil
from typing import TYPE_CHECKING

from uncaged_bundles.errors import BundleError, SandboxUnavailable
from uncaged_bundles.records import replace
from uncaged_bundles.validation.validate import Bundle

from ..sandbox.mechanism import Mechanism, choose
from .cell import Cell, CellDied, CellLimits

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


def start_cells(bundle: Bundle, prefer: str, *, begun: tuple[Cell, Mechanism] | None) -> Cells:
    """The cells of a worker, the shared one started.

    Args:
        prefer: as for `choose`. begun: a process that is starting already, in a sandbox that was assumed to hold; if it does not, one
            that was tried is used instead.
    Raises:
        SandboxUnavailable, BundleError: it cannot be started.
    """
    if begun is not None and bundle.trusted:
        begun[0].close()
    elif begun is not None:
        cells = Cells(bundle, begun[1], CellLimits(), begun=begun[0])
        try:
            cells.shared()
            return cells
        except SandboxUnavailable:
            cells.close()
    cells = Cells(bundle, None if bundle.trusted else choose(prefer), CellLimits())
    cells.shared()
    return cells


class Cells:
    """Hands out the shared cell, or one for a thread alone. Made by a thread that outlives it.

    mechanism: None only for a trusted bundle. begun: a cell of that mechanism that is starting already.
    """

    def __init__(self, bundle: Bundle, mechanism: Mechanism | None, limits: CellLimits, *, begun: Cell | None = None) -> None:
        self.bundle = bundle
        self._mechanism = mechanism
        self._limits = limits
        self._begun = begun
        self._home = threading.current_thread()
        self._spawner: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._spawning = threading.Lock()
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

    def alone(self, *, cpu_s: float = 0) -> Cell:
        """A cell of its own, for proving or for a thread that the shared one died with. The caller closes it.

        Args:
            cpu_s: what one request may take, if that is more than the usual allowance.
        """
        limits = replace(self._limits, cpu_s=max(self._limits.cpu_s, ceil(2 * cpu_s)))
        if threading.current_thread() is self._home:
            return self._start(limits)
        with self._spawning:
            if self._spawner is None:
                from concurrent.futures import ThreadPoolExecutor  # it is seldom needed, and every worker's start would pay for it

                self._spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")
        return self._spawner.submit(self._start, limits).result()

    def close(self) -> None:
        with self._lock:
            if self._shared is not None:
                self._shared.close()
                self._shared = None
        if self._spawner is not None:
            self._spawner.shutdown()

    def _start(self, limits: CellLimits) -> Cell:
        """A new cell; tried once more if it ended while it was starting, for that may be somebody else's doing (memory ran out, a kill)."""
        try:
            return self._start_once(limits)
        except (SandboxUnavailable, BundleError) as exc:
            if not _ended(exc.__cause__):
                raise
            return self._start_once(limits)

    def _start_once(self, limits: CellLimits) -> Cell:
        begun, self._begun = self._begun, None
        if begun is None:
            return Cell.start(self.bundle, self._mechanism, limits=limits)
        begun.take(self.bundle)
        return begun


def _ended(cause: BaseException | None) -> bool:
    """Whether a start failed because the process was gone, and not because it did not hold or did not answer."""
    return isinstance(cause, BrokenPipeError) or (isinstance(cause, CellDied) and cause.reason == "died")
