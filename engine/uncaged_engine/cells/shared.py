"""Pool of a worker's sandbox processes: one shared by all threads, replaced when it dies, and extra
ones for single threads.

`--die-with-parent` follows the operating-system *thread* that started the sandbox, not its process.
So only threads that live as long as
the worker start cells: the one that made the pool, and one spawner thread on demand.
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


def start_cells(
    bundle: Bundle, prefer: str, *, limits: CellLimits, begun: tuple[Cell, Mechanism] | None
) -> Cells:
    """Make the pool of a worker and start the shared cell.

    Args:
        prefer: as for `choose`. begun: a process that is starting already, in a sandbox that was
            assumed to work; if it fails, a sandbox that passed the self-test is used.
    Raises:
        SandboxUnavailable, BundleError: it cannot be started.
    """
    if begun is not None and bundle.trusted:
        begun[0].close()
    elif begun is not None:
        cells = Cells(bundle, begun[1], limits, begun=begun[0])
        try:
            cells.shared()
            return cells
        except SandboxUnavailable:
            cells.close()
    cells = Cells(bundle, None if bundle.trusted else choose(prefer), limits)
    cells.shared()
    return cells


class Cells:
    """The shared cell, and cells for single threads. Make it in a thread that outlives it.

    mechanism: None only for a trusted bundle. begun: a cell of that mechanism that is starting
    already.
    """

    def __init__(
        self,
        bundle: Bundle,
        mechanism: Mechanism | None,
        limits: CellLimits,
        *,
        begun: Cell | None = None,
    ) -> None:
        self.bundle = bundle
        self._mechanism = mechanism
        self._limits = limits
        self._begun = begun
        self._home = threading.current_thread()
        self._spawner: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._spawning = threading.Lock()  # not `_lock`: `shared` holds that while it starts a cell
        self._shared: Cell | None = None

    def shared(self) -> Cell:
        """Return the live shared cell, started if necessary.

        Raises:
            SandboxUnavailable, BundleError: it cannot be started.
        """
        # under the lock: threads whose cell died together wait for one new cell
        with self._lock:
            if self._shared is None or not self._shared.alive:
                if self._shared is not None:
                    self._shared.close()  # reaps it: a killed sandbox is a zombie until then
                self._shared = self.alone()
            return self._shared

    def alone(self, *, cpu_s: float = 0) -> Cell:
        """Start a cell for one thread: to prove a replay, or because the shared one died on it. The
        caller closes it.

        Args:
            cpu_s: processor time of one request, where that exceeds the usual allowance.
        """
        limits = replace(self._limits, cpu_s=max(self._limits.cpu_s, ceil(2 * cpu_s)))
        if threading.current_thread() is self._home:
            return self._start(limits)
        with self._spawning:
            if self._spawner is None:
                # it is seldom needed, and every worker's start would pay for it
                from concurrent.futures import ThreadPoolExecutor

                self._spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")
        return self._spawner.submit(self._start, limits).result()

    def close(self) -> None:
        """End the shared cell and the spawner."""
        with self._lock:
            if self._shared is not None:
                self._shared.close()
                self._shared = None
        if self._spawner is not None:
            self._spawner.shutdown()

    def _start(self, limits: CellLimits) -> Cell:
        """Start a cell, with one retry if the process died while starting: memory may have run out,
        or something else killed it.
        """
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
        begun.load(self.bundle)
        return begun


def _ended(cause: BaseException | None) -> bool:
    """Tell whether a start failed because the process died, not because its self-test failed or it
    did not answer.
    """
    return isinstance(cause, BrokenPipeError) or (
        isinstance(cause, CellDied) and cause.reason == "died"
    )
