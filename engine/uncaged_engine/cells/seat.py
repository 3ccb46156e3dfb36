"""A flow thread keeps its place in a cell, and finds it again in a new one when the cell dies.

Rule 1: whoever held the cell's lock when it died is the culprit; it goes on alone in a cell of its own, the others in a new shared one.
Rule 2: a culprit that kills its own cell too, without one answer in between, has failed. One retry separates a slow machine, or an
    allowance that was used up, from an endless loop.
Rule 3: the journal is flushed before anything is rebuilt from it, so that nothing performed is lost to a bundle that hangs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from uncaged_bundles.errors import BundleError, ReplayError
from uncaged_bundles.ids import ThreadId

from ..journal.blobs import Blobs
from ..journal.infolog import InfoLog
from ..journal.journal import Journal
from ..journal.recover import History
from .cell import Cell, CellDied
from .replay import Replay, patience_s
from .reply import BundleReply
from .shared import Cells


class BundleTooSlow(BundleError):
    """A computation of the bundle passed its limit, also alone; a higher limit lets the thread go on."""

    def __init__(self, limit_s: float, message: str) -> None:
        super().__init__(message)
        self.limit_s = limit_s


class Seat:
    """Where one thread's generator lives. Used by that thread's driver only."""

    def __init__(
        self,
        *,
        cells: Cells,
        slot: int,
        journal: Journal,
        thread: ThreadId,
        start: Mapping[str, Any],
        blobs: Blobs,
        deadline_s: float,
        info: InfoLog,
        alone: bool = False,
    ) -> None:
        """Args: deadline_s: for one computation of the bundle. alone: begin in a cell of its own, so that no other thread waits so long."""
        self._cells = cells
        self._slot = slot
        self._journal = journal
        self._thread = thread
        self._start = start
        self._blobs = blobs
        self._deadline_s = deadline_s
        self._info = info
        self._handed_over = 0
        self._cell: Cell | None = None
        self._alone = alone
        self._answered = alone  # a cell of its own is not yet a second chance

    def begin(self, history: History) -> BundleReply:
        """Start or replay the generator in the shared cell.

        Raises:
            ReplayError: the bundle does not yield what the journal holds.
            BundleError: it does not answer, even alone.
        """
        replay = Replay(history, self._start, self._blobs, trusted=self._cells.bundle.trusted)
        self._handed_over = replay.handed_over
        while True:
            limit_s = self._replay_deadline_s(history)
            cell = self._cells.alone(cpu_s=limit_s) if self._alone else self._cells.shared()
            self._cell = cell
            try:
                now = replay.run(cell, self._slot, deadline_s=limit_s)
            except CellDied as died:
                self._blame(died)
                continue
            if now is None:
                now = self._prove(replay, history)
            self._answered = True
            self._info.note("G5T1YA8E", f"sandbox: {self._cell.mechanism if self._cell is not None else 'none'}")
            return now

    def ask(self, seq: int, line: bytes) -> BundleReply:
        """Send the outcome of step *seq*; the same errors as `begin`."""
        cell = self._cell
        if cell is None:
            raise ReplayError(f"thread {self._thread} has no generator")
        try:
            sent = self._blobs.expand(line)
            reply = cell.tell(self._slot, seq - self._handed_over, sent, deadline_s=self._deadline_s, slow=self._journal.flush)
        except CellDied as died:
            self._journal.flush()  # the outcome is on disk before anybody is blamed
            self._blame(died)
            return self.begin(self._reread())
        self._answered = True
        return reply

    def leave(self) -> None:
        """Forget the generator."""
        cell, self._cell = self._cell, None
        if cell is None:
            return
        if self._alone:
            cell.close()
        elif cell.alive:
            with suppress(CellDied):  # the others notice by themselves
                cell.ask("D", self._slot, 0, b"", deadline_s=self._deadline_s)

    def _prove(self, replay: Replay, history: History) -> BundleReply:
        """A difference in a shared cell may be another thread's doing: only one seen alone counts."""
        if not self._alone:
            self.leave()
        elif self._cell is not None:
            self._cell.close()
        self._alone = True
        limit_s = self._replay_deadline_s(history)
        self._cell = self._cells.alone(cpu_s=limit_s)
        try:
            return replay.run_slowly(self._cell, self._slot, self._journal.read(), deadline_s=limit_s)
        except CellDied as died:
            raise self._hopeless(died) from died

    def _blame(self, died: CellDied) -> None:
        self._info.note("P3X6RM0B", str(died))
        if self._cell is not None and self._alone:
            self._cell.close()
            if not self._answered:
                raise self._hopeless(died) from died
        self._cell = None
        self._answered = False
        if died.reason != "closed":
            self._alone = True

    def _hopeless(self, died: CellDied) -> BundleError:
        seq = len(self._reread().steps) + 1
        if died.reason == "deadline":
            return BundleTooSlow(
                self._deadline_s,
                f"the bundle computed for more than {self._deadline_s:g} seconds before step {seq}, also when it was tried alone",
            )
        where = f"thread {self._thread}: the bundle gave no answer before step {seq}"
        return BundleError(f"{where}, and none when it was tried alone ({died.reason}: {died.detail})")

    def _reread(self) -> History:
        return self._journal.reread(self._cells.bundle.hash, self._thread)

    def _replay_deadline_s(self, history: History) -> float:
        if self._alone:
            return patience_s(self._journal.read(), len(history.steps), self._deadline_s)
        return self._deadline_s + len(history.steps) / 1000
