"""Session of one flow thread with its bundle's process, rebuilt by replay when the process dies.

Rule 1: the thread that held the cell's lock when it died is the culprit and continues in a cell of
its own; the others share a new one.
Rule 2: a culprit whose own cell dies as well, without a reply in between, has failed. One retry
    separates a slow machine, or a used-up allowance, from an endless loop.
Rule 3: the journal is flushed before a session is rebuilt from it, so that a bundle that hangs
loses no performed effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from uncaged_bundles.errors import BundleError, ReplayError
from uncaged_bundles.ids import ThreadId

from ..journal import lines
from ..journal.infolog import InfoLog
from ..journal.journal import Journal
from ..journal.recover import History
from .cell import Cell, CellDied
from .replay import Replay, replay_timeout_s
from .reply import BundleReply
from .shared import Cells


class BundleTooSlow(BundleError):
    """A computation exceeded its limit, in a cell of its own as well; the thread can resume with a
    higher limit.
    """

    def __init__(self, limit_s: float, message: str) -> None:
        super().__init__(message)
        self.limit_s = limit_s


class BundleSession:
    """One thread's generator in a cell. Used by that thread's driver only."""

    def __init__(
        self,
        *,
        cells: Cells,
        slot: int,
        journal: Journal,
        thread: ThreadId,
        start: Mapping[str, Any],
        deadline_s: float,
        info: InfoLog,
        alone: bool = False,
    ) -> None:
        """Args: deadline_s: for one computation of the bundle. alone: begin in a cell of its own,
        so that a long limit blocks no thread.
        """
        self._cells = cells
        self._slot = slot
        self._journal = journal
        self._thread = thread
        self._start = start
        self._blobs = journal.blobs
        self._deadline_s = deadline_s
        self._info = info
        self._handed_over = 0
        self._cell: Cell | None = None
        self._alone = alone
        self._answered = alone  # a cell of its own from the start is no retry yet (rule 2)

    def begin(self, history: History) -> BundleReply:
        """Start the generator, or replay it to the end of its journal.

        Raises:
            ReplayError: the bundle does not yield the recorded effects.
            BundleError: it does not reply, in a cell of its own either.
        """
        replay = Replay(history, self._start, self._blobs, trusted=self._cells.bundle.trusted)
        self._handed_over = replay.handed_over
        # each death leads here again, with less to try: shared, then alone, then failed
        while True:
            limit_s = self._replay_deadline_s(history)
            cell = self._cells.alone(cpu_s=limit_s) if self._alone else self._cells.shared()
            self._cell = cell
            try:
                now = replay.run(cell, self._slot, deadline_s=limit_s)
            except CellDied as died:
                self._handle_death(died)
                continue
            if now is None:
                now = self._replay_alone(replay, history)
            self._answered = True
            self._info.note(
                "G5T1YA8E", f"sandbox: {self._cell.mechanism if self._cell is not None else 'none'}"
            )
            return now

    def ask(self, seq: int, line: bytes) -> BundleReply:
        """Send the outcome of step *seq*; the same errors as `begin`."""
        cell = self._cell
        if cell is None:
            raise ReplayError(f"thread {self._thread} has no generator")
        try:
            # the bundle knows no blobs: what a line may hold must not change what it sees
            if line.rfind(lines.BLOB_KEY, -lines.BLOB_ROOM_BYTES) >= 0:
                line = self._blobs.expand(line)
            reply = cell.send_outcome(
                self._slot,
                seq - self._handed_over,
                line,
                deadline_s=self._deadline_s,
                on_slow=self._journal.flush,
            )
        except CellDied as died:
            self._journal.flush()  # rule 3
            self._handle_death(died)
            return self.begin(self._reread())
        self._answered = True
        return reply

    def close(self) -> None:
        """Drop the generator; the shared cell stays."""
        cell, self._cell = self._cell, None
        if cell is None:
            return
        # a shared cell keeps the generators of other threads; only ours is dropped
        if self._alone:
            cell.close()
        elif cell.alive:
            with suppress(CellDied):  # other threads notice at their next request
                cell.ask("D", self._slot, 0, b"", deadline_s=self._deadline_s)

    def _replay_alone(self, replay: Replay, history: History) -> BundleReply:
        """Replay in a cell of its own: a difference in a shared one may come from another thread's
        side effects on a module.
        """
        if not self._alone:
            self.close()
        elif self._cell is not None:
            self._cell.close()
        self._alone = True
        limit_s = self._replay_deadline_s(history)
        self._cell = self._cells.alone(cpu_s=limit_s)
        try:
            return replay.run_stepwise(
                self._cell, self._slot, self._journal.read(), deadline_s=limit_s
            )
        except CellDied as died:
            raise self._failure(died) from died

    def _handle_death(self, died: CellDied) -> None:
        self._info.note("P3X6RM0B", str(died))
        if self._cell is not None and self._alone:
            self._cell.close()
            if not self._answered:
                raise self._failure(died) from died
        self._cell = None
        self._answered = False
        # rule 1: closed means that another thread's request ended it
        if died.reason != "closed":
            self._alone = True

    def _failure(self, died: CellDied) -> BundleError:
        seq = len(self._reread().steps) + 1
        if died.reason == "deadline":
            return BundleTooSlow(
                self._deadline_s,
                f"the bundle computed for more than {self._deadline_s:g} seconds before step {seq}, also when it was tried alone",
            )
        where = f"thread {self._thread}: the bundle gave no answer before step {seq}"
        return BundleError(
            f"{where}, and none when it was tried alone ({died.reason}: {died.detail})"
        )

    def _reread(self) -> History:
        return self._journal.reread()

    def _replay_deadline_s(self, history: History) -> float:
        if self._alone:
            return replay_timeout_s(self._journal.read(), len(history.steps), self._deadline_s)
        # a millisecond a step, a hundred times what a replay takes: other threads wait meanwhile
        return self._deadline_s + len(history.steps) / 1000
