"""Journal of a thread in a shared store: a file for this process's readers, and the store for
everyone else.

Rule 1: a line counts once the store has it. The file is a copy, and is removed with its process.
Rule 2: lines go to the store at a flush, in one transaction, after the blobs that they name.
Rule 3: a refused transaction is final for this owner: another one may have the thread. What a store
lacks for now, such as disk space, is waited for: nothing was written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage.store import Store

from ..journal.blobs import Blobs
from ..journal.file import JournalFile
from ..journal.journal import Journal, JournalBroken
from ..journal.origin import ThreadOrigin
from ..journal.recover import History
from ..journal.trouble import Trouble
from ..state.observe import facts_of
from ..state.states import State, status
from ..stores.protocol import LineOwner, StoreLacks


class SharedJournal:
    """An owned thread of a shared store (`Journal`).

    send_blobs: puts the blobs that lines name into the store. sent: called with the lines that the
    store has got, in order, in the thread of execution that sent them. wait: called while the store
    lacks something, before each further attempt; without it, that is final, too.
    """

    def __init__(
        self,
        file: JournalFile,
        owner: LineOwner,
        *,
        send_blobs: Callable[[bytes], None],
        sent: Callable[[Sequence[bytes]], None],
        wait: Callable[[StoreLacks], None] | None = None,
    ) -> None:
        self.place = file.place
        self.on_flush: Callable[[int], None] = _ignore
        self.on_flush_time: Callable[[float], None] | None = None
        self.lost: UncagedError | None = None
        """Why the store took no more lines; None if it does."""
        self._file = file
        self._owner = owner
        self._send_blobs = send_blobs
        self._sent = sent
        self._wait = wait
        self._kept: list[bytes] = []
        self._flushed_bytes = file.size_bytes
        self._lock = threading.RLock()

    @property
    def history(self) -> History:
        return self._file.history

    @property
    def blobs(self) -> Blobs:
        return self._file.blobs

    @property
    def flushed_bytes(self) -> int:
        return self._flushed_bytes

    def kept_bytes(self) -> int:
        return self._file.kept_bytes()

    def origin(self) -> ThreadOrigin | None:
        return self._file.origin()

    def append(self, body: bytes, *, flush: bool = False) -> bytes:
        with self._lock:
            self._require_kept()
            line = self._file.append(body)
            self._kept.append(line)
        if flush:
            self.flush()
        return line

    def flush(self) -> None:
        with self._lock:
            self._require_kept()
            if not self._kept:
                return
            lines, self._kept = self._kept, []
            begin_s = time.monotonic()
            try:
                self._send(lines)
            except UncagedError as exc:
                self.lost = exc
                self._require_kept()
            # crash here: the store has a step that the dispatcher does not know
            if self.on_flush_time is not None:
                self.on_flush_time(time.monotonic() - begin_s)
            self._flushed_bytes = size = self._file.size_bytes
            self._sent(lines)
        self.on_flush(size)

    def read(self, start: int = 0) -> bytes:
        return self._file.read(start)

    def reread(self) -> History:
        return self._file.reread()

    def note(self, why: str) -> Trouble:
        return self._file.note(why)

    def close(self) -> None:
        self._file.close()
        self._owner.close()

    def _send(self, lines: Sequence[bytes]) -> None:
        while True:
            try:
                self._send_blobs(b"".join(lines))
                self._owner.append(lines)
                return
            except StoreLacks as exc:
                if self._wait is None:
                    raise
                self._wait(exc)

    def _require_kept(self) -> None:
        if self.lost is not None:
            raise JournalBroken(str(self.lost)) from self.lost


def left_word(journal: Journal, files: Store, bundle: BundleHash) -> State | None:
    """Return the state of a thread that was left for a person, or has ended; None for one that goes
    on. A dispatcher drives a thread again if its worker died before it reported the word.
    """
    history = journal.history
    state = status(facts_of(history, files, bundle, journal.blobs), locked=False)
    # the driver itself states `unknown`, and notifies a person
    goes_on = state == "interrupted" or (state == "unknown" and not history.unsettled)
    return None if goes_on else state


def _ignore(_size: int) -> None:
    """Report to no follower."""
