"""Owner of a log: the one writer of its lines, under a fence (`LineOwner`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from uncaged_bundles.errors import DamagedError, StorageError, UncagedError
from uncaged_engine.services.stores import (
    END,
    FenceRaised,
    JournalBusy,
    LineOwner,
    StoreLacks,
    ThreadHead,
    continued,
)

from .logs import LogHead, LogTables

RELEASE_S = 90.0
"""How long an owner that leaves waits for what the server lacks, or for a frozen client's end."""
LACK_S = 0.5


class LogOwner(LineOwner):
    """The one writer of a log, as long as its session lives and no other one raised the fence."""

    def __init__(self, tables: LogTables, log: LogHead, *, fence: int, last: bytes) -> None:
        self._tables = tables
        self._log = log
        self._fence = fence
        self._head = log.head
        self._ended = last.startswith(END)
        self._is_broken = False
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def head(self) -> ThreadHead:
        return self._head

    @property
    def fence(self) -> int:
        return self._fence

    def append(self, lines: Sequence[bytes]) -> ThreadHead:
        with self._lock:
            self._require_usable()
            before = self._head
            after, ended = continued(self._log.subject, before, lines, ended=self._ended)
            if not lines:
                return before
            try:
                done = self._tables.append(self._log, self._fence, before, lines, after)
            except StoreLacks:
                raise  # nothing was written
            except UncagedError:
                # whether the lines are in the database is unknown; the next owner reads them
                self._is_broken = True
                raise
            if not done:
                self._is_broken = True
                raise self._tables.refusal(self._log, self._fence)
            self._head, self._ended = after, ended
            return after

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            give_up_s = time.monotonic() + RELEASE_S
            while time.monotonic() < give_up_s:
                try:
                    self._tables.release(self._log, self._fence)
                    return
                except StoreLacks:
                    time.sleep(LACK_S)  # the session lives, and would stay the owner
                except UncagedError:
                    return  # the session has ended, and the ownership with it

    def _require_usable(self) -> None:
        if self._is_closed:
            raise JournalBusy(f"{self._log.subject}: its owner was closed; open it again")
        if self._is_broken:
            raise StorageError(f"{self._log.subject}: an earlier append failed; open it again")


def opened(tables: LogTables, log: LogHead, fence: int) -> LogOwner:
    """Return the owner of a log after a check of its whole chain; a damaged one has no owner.

    Raises:
        DamagedError: as `LogTables.verify`. JournalBusy: another owner took the log over meanwhile.
    """
    try:
        return LogOwner(tables, log, fence=fence, last=tables.verify(log))
    except DamagedError:
        refusal = tables.refusal(log, fence)
        if isinstance(refusal, FenceRaised):  # the lines are those of the other one
            raise JournalBusy(f"{log.subject} was taken over by another owner just now") from None
        tables.release(log, fence)
        raise
    except BaseException:
        tables.release(log, fence)
        raise
