"""Copies of threads that a process looks at, each brought up to date when it is named.

The copy of a thread that a worker drives is locked here, as a journal is by its worker: whatever
reads the file sees the same state as on the machine of that worker.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from uncaged_bundles.errors import DamagedError, NotFoundError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import replace
from uncaged_bundles.storage.store import LATEST

from ..journal import lock
from ..journal.file import JournalFile
from ..journal.journal import JournalBusy
from ..state.observe import (
    ThreadSummary,
    read_summary,
    start_in,
    summary_of_end,
    unreadable_summary,
)
from ..stores.protocol import ThreadEntry
from ..stores.reading import lines_of
from .dispatch import ThreadQueue
from .journal import SharedJournal
from .replica import Replica

TAIL_LINES = 16
"""Lines from which an ended thread is listed."""
STOPPED = frozenset(("paused", "waiting"))


class ThreadCopies:
    """Threads of a shared store in a replica's directory. Its methods may be called from several
    threads of execution; one waits while another one owns a thread.
    """

    def __init__(self, replica: Replica, queue: ThreadQueue) -> None:
        self._replica = replica
        self._threads = replica.backend.threads
        self._queue = queue
        self._lines: dict[ThreadId, int] = {}
        self._locks: dict[ThreadId, int] = {}
        self._lock = threading.RLock()

    def locate(self, text: str) -> ThreadEntry:
        """Return a thread by its id, a unique start of it, or ``latest``.

        Raises:
            UsageError, NotFoundError: as `ThreadStorage.locate`.
        """
        if text != LATEST:
            return self._threads.locate(text)
        after: ThreadEntry | None = None
        first: ThreadEntry | None = None
        # a child only if no other thread is there; a few pages, since children follow their parent
        while page := self._threads.page(after=after, limit=100, newest_first=True):
            first, after = first or page[0], page[-1]
            found = next((entry for entry in page if not entry.by_thread), None)
            if found is not None:
                return found
        if first is None:
            raise NotFoundError(
                f"{self._replica.backend.address} has no thread yet; `uncaged-workflow run FLOW` starts one"
            )
        return first

    def bring(self, text: str) -> tuple[BundleHash, ThreadId, Path]:
        """Copy the thread that *text* names, or its lines since the last time, with its bundle.

        Returns:
            Its bundle, id, and the path of the copy.
        Raises:
            UsageError, NotFoundError: as `locate`. DamagedError: as `ThreadStorage.read`.
        """
        entry = self.locate(text)
        # before the lines: a thread that ends in between is not taken for a dead one
        with self._lock:
            self._bring(entry, self._queue.pending([entry.id]).get(entry.id))
        return entry.bundle, entry.id, self._replica.files.data_path(entry.bundle, entry.id)

    def summaries(self, entries: Sequence[ThreadEntry]) -> Iterator[ThreadSummary]:
        """Yield a summary of each thread; those that have ended are not copied."""
        live = self._queue.pending([entry.id for entry in entries])
        for entry in entries:
            try:
                with self._lock:
                    summary = self._summary(entry, live.get(entry.id))
            except UncagedError as exc:
                summary = unreadable_summary(entry.bundle, entry.id, exc)
            imported = entry.place < 0
            yield replace(summary, imported=True, agents=()) if imported else summary

    def pending(self, threads: Collection[ThreadId]) -> dict[ThreadId, str]:
        """Return the workers of those threads that are driven or wait (`ThreadQueue.pending`)."""
        return self._queue.pending(threads)

    def is_left(self, thread: ThreadId) -> bool:
        """Tell whether no worker drives a thread or will, so that it stays as it is."""
        worker = self._queue.pending([thread]).get(thread)
        if worker == "":
            entry = self.locate(thread)
            with self._lock:
                self._bring(entry, worker)
                return self._read(entry).status in STOPPED
        return worker is None

    @contextmanager
    def owned(self, bundle: BundleHash, thread: ThreadId) -> Iterator[SharedJournal]:
        """Own a thread's journal for a block.

        Raises:
            JournalBusy: a worker drives the thread, or another command just writes to it.
        """
        replica = self._replica
        with self._lock, self._threads.open(bundle, thread) as owner:
            self._forget(bundle, thread)
            lines = list(lines_of(self._threads, bundle, thread))
            replica.put_journal(bundle, thread, lines, self._threads.notes(bundle, thread))
            try:
                file = JournalFile.open(replica.files, bundle, thread)
                try:
                    yield SharedJournal(
                        file, owner, send_blobs=replica.send_blobs, sent=_need_no_record
                    )
                finally:
                    file.close()
            finally:
                self._forget(bundle, thread)

    def close(self) -> None:
        """Release the locks of the copies."""
        while self._locks:
            lock.release(self._locks.popitem()[1])

    def _summary(self, entry: ThreadEntry, worker: str | None) -> ThreadSummary:
        ends = self._threads.ends(entry.bundle, entry.id, limit=TAIL_LINES)
        summary = summary_of_end(
            entry.bundle,
            entry.id,
            b"".join(ends.last),
            lambda: start_in(ends.first),
            locked=worker is not None,
        )
        if summary is not None:
            return summary
        self._bring(entry, worker)
        return self._read(entry)

    def _read(self, entry: ThreadEntry) -> ThreadSummary:
        files = self._replica.files
        path = files.data_path(entry.bundle, entry.id)
        return read_summary(files, entry.bundle, entry.id, path)[0]

    def _bring(self, entry: ThreadEntry, worker: str | None) -> None:
        """Bring a copy up to date. worker: which drives the thread; empty if it waits for one; None
        if none will drive it.
        """
        bundle, thread = entry.bundle, entry.id
        known = self._lines.get(thread)
        lines = list(lines_of(self._threads, bundle, thread, from_line=known or 0))
        if known is None:
            with suppress(NotFoundError, DamagedError):  # what needs it says so
                self._replica.files.bring_bundle(bundle)
            notes = self._threads.notes(bundle, thread)
            self._replica.put_journal(bundle, thread, lines, notes)
        elif lines:
            self._replica.add_lines(bundle, thread, lines)
        self._lines[thread] = (known or 0) + len(lines)
        if thread in self._locks:
            lock.release(self._locks.pop(thread))
        # a worker that takes a stopped thread leaves it
        if worker or (worker is not None and self._read(entry).status not in STOPPED):
            self._show_live(self._replica.files.data_path(bundle, thread), thread)

    def _show_live(self, path: Path, thread: ThreadId) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        if not lock.take(handle):
            os.close(handle)
            raise JournalBusy(f"thread {thread} is in use in {path.parent}")
        self._locks[thread] = handle

    def _forget(self, bundle: BundleHash, thread: ThreadId) -> None:
        if thread in self._locks:
            lock.release(self._locks.pop(thread))
        self._lines.pop(thread, None)
        self._replica.drop_journal(bundle, thread)


def _need_no_record(_lines: Sequence[bytes]) -> None:
    """Record nothing: controls are no steps."""
