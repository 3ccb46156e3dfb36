"""Copies of threads that a process looks at, each brought up to date when it is named.

The copy of a thread that a worker drives is locked here, as a journal is by its worker: whatever
reads the file sees the same state as on the machine of that worker.
"""

from __future__ import annotations

import dataclasses
import math
import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import DamagedError, NotFoundError, StorageError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import replace
from uncaged_bundles.storage.store import LATEST

from ..journal import lock
from ..journal.blobs import named_in, needed_in
from ..journal.file import JournalFile
from ..journal.journal import JournalBusy
from ..journal.recover import recover
from ..state.observe import (
    GOES_ON,
    ThreadSummary,
    read_summary,
    start_in,
    summary_of_end,
    summary_of_lines,
    unreadable_summary,
)
from ..state.pages import word
from ..stores.protocol import ThreadEnds, ThreadEntry
from ..stores.reading import lines_of
from .dispatch import ThreadQueue
from .journal import SharedJournal
from .replica import Replica

IDLE_S = 600.0
"""A copy that nothing looked at for so long is removed, with the blobs that only it names."""
MOST_BYTES = 1 << 30
"""Copies of journals together; beyond that, those go first that were looked at longest ago."""
BUSY_S = 60.0
"""A copy stays for so long in any case: a reader may have its path."""
SWEEP_S = 30.0
LOOK_S = 0.4
"""For so long the queue's reply about the followed threads holds."""
MOST_SUMMARIES = 20_000
TAIL_LINES = 8
"""Lines from which an ended thread, or a short one, is listed."""


class ThreadCopies:
    """Threads of a shared store in a replica's directory. Its methods may be called from several
    threads of execution; one waits while another one owns a thread.
    """

    def __init__(self, replica: Replica, queue: ThreadQueue) -> None:
        self._replica = replica
        self._threads = replica.backend.threads
        self.queue = queue
        self._copies: dict[ThreadId, _Copy] = {}
        self._summaries: OrderedDict[ThreadId, tuple[bytes, ThreadSummary]] = OrderedDict()
        self._owned = dataclasses.replace(replica.files, log_folder="owned")
        self._swept_s = time.monotonic()
        self._problems: dict[BundleHash, str | None] = {}
        self._lock = threading.RLock()
        self._followed: Counter[ThreadId] = Counter()
        self._seen: dict[ThreadId, str] = {}
        self._looked_s = -math.inf
        self._look_lock = threading.Lock()

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
            self._bring(entry, self.queue.pending([entry.id]).get(entry.id))
        return entry.bundle, entry.id, self._replica.files.data_path(entry.bundle, entry.id)

    def summaries(self, entries: Sequence[ThreadEntry]) -> Iterator[ThreadSummary]:
        """Yield a summary of each thread; those that have ended are not copied."""
        live = self.queue.pending([entry.id for entry in entries])
        with self._lock:
            self._problems.clear()
        left = [entry for entry in entries if entry.id not in live]
        known = self._known(left) if self._summaries else {}
        ends = self._threads.ends(
            [entry for entry in entries if entry.id not in known], limit=TAIL_LINES
        )
        for entry in entries:
            try:
                if (summary := known.get(entry.id)) is None:
                    with self._lock:
                        summary = self._summary(entry, live.get(entry.id), ends.get(entry.id))
            except StorageError:
                raise  # the store is away: that is no state of a thread
            except UncagedError as exc:
                summary = unreadable_summary(entry.bundle, entry.id, exc)
            imported = entry.place < 0
            yield replace(summary, imported=True, agents=()) if imported else summary

    def statuses(self, entries: Sequence[ThreadEntry]) -> Iterator[str]:
        """Yield the status of each thread as a list shows it (`paging.word`). Those that a worker
        drives are not read.
        """
        live = self.queue.pending([entry.id for entry in entries])
        left = [entry for entry in entries if not live.get(entry.id)]
        read = self.summaries(left)
        for entry in entries:
            yield "running" if live.get(entry.id) else word(next(read))

    def with_problem(self, summary: ThreadSummary) -> ThreadSummary:
        """Return the summary of a thread that was brought, with why no worker can go on with it."""
        copy = self._copies.get(summary.thread_id)
        if copy is None or copy.problem is None or summary.status not in GOES_ON:
            return summary
        return replace(summary, problem=summary.problem or copy.problem)

    def records(self, entries: Sequence[ThreadEntry]) -> dict[ThreadId, list[dict[str, Any]]]:
        """Return the records of threads from their start on, without large fields. Damaged threads
        are left out.
        """
        from ..threads.thread_documents import lean_records, lean_records_in  # 4 ms of `threads`

        files, found = self._replica.files, {}
        ends = self._threads.ends(entries, limit=TAIL_LINES)
        for entry in entries:
            both = ends.get(entry.id)
            with suppress(DamagedError):
                if both is not None and _is_whole(both) and not any(map(needed_in, both.last)):
                    data = b"".join(both.last)
                    found[entry.id] = lean_records_in(files, entry.bundle, entry.id, data)[0]
                else:
                    found[entry.id] = lean_records(files, self.bring(entry.id))[0]
        return found

    def pending(self, threads: Collection[ThreadId]) -> dict[ThreadId, str]:
        """Return the workers of those threads that are driven or wait (`ThreadQueue.pending`)."""
        return self.queue.pending(threads)

    @contextmanager
    def followed(self, thread: ThreadId) -> Iterator[None]:
        """Look at a thread with the others that are followed (`is_left`), for a block."""
        with self._look_lock:
            self._followed[thread] += 1
            self._looked_s = -math.inf  # what was seen before this is no reply for it
        try:
            yield
        finally:
            with self._look_lock:
                self._followed[thread] -= 1
                if not self._followed[thread]:
                    del self._followed[thread]

    def is_left(self, thread: ThreadId) -> bool:
        """Tell whether no worker drives a thread or will, so that it stays as it is. The queue is
        asked once for all that are followed.
        """
        with self._look_lock:
            if thread not in self._followed:
                worker = self.queue.pending([thread]).get(thread)
            else:
                if time.monotonic() - self._looked_s > LOOK_S:
                    self._seen = self.queue.pending(list(self._followed))
                    self._looked_s = time.monotonic()
                worker = self._seen.get(thread)
        if worker == "":
            entry = self.locate(thread)
            with self._lock:
                self._bring(entry, worker)
                return self._copies[thread].handle is None
        return worker is None

    @contextmanager
    def owned(self, bundle: BundleHash, thread: ThreadId) -> Iterator[SharedJournal]:
        """Own a thread's journal for a block. It is another file than the copy for readers.

        Raises:
            JournalBusy: a worker drives the thread, or another command just writes to it.
        """
        replica, files = self._replica, self._owned
        with self._lock, self._threads.open(bundle, thread) as owner:
            files.logs.mkdir(mode=0o700, exist_ok=True)
            lines = list(lines_of(self._threads, bundle, thread))
            notes = self._threads.notes(bundle, thread)
            try:
                replica.put_journal(bundle, thread, lines, notes, files=files)
                file = JournalFile.open(files, bundle, thread)
                try:
                    yield SharedJournal(
                        file, owner, send_blobs=replica.send_blobs, sent=_need_no_record
                    )
                finally:
                    file.close()
            finally:
                replica.drop_journal(bundle, thread, files=files)

    @contextmanager
    def briefly(self, entry: ThreadEntry) -> Iterator[None]:
        """Remove the copy of a thread that is made in a block, unless there was one before."""
        with self._lock:
            was_there = entry.id in self._copies
        try:
            yield
        finally:
            if not was_there:
                self.forget(entry)

    def forget(self, entry: ThreadEntry) -> None:
        """Remove the copy of a thread that the store has no more."""
        with self._lock:
            if entry.id in self._copies:
                self._drop(entry.id)
            self._summaries.pop(entry.id, None)

    def close(self) -> None:
        """Remove the copies."""
        for thread in list(self._copies):
            self._drop(thread)

    def _known(self, entries: Sequence[ThreadEntry]) -> dict[ThreadId, ThreadSummary]:
        """Return the summaries of threads without a worker that have not changed."""
        heads, found = self._threads.heads(entries), {}
        with self._lock:
            for thread, head in heads.items():
                digest, summary = self._summaries.get(thread, (b"", None))
                if summary is not None and digest == head.digest:
                    self._summaries.move_to_end(thread)
                    found[thread] = summary
        return found

    def _summary(
        self, entry: ThreadEntry, worker: str | None, ends: ThreadEnds | None
    ) -> ThreadSummary:
        """Return a summary. ends: None of a thread that cannot be read."""
        summary = None if ends is None else self._summary_in(entry, worker, ends)
        if summary is None:
            self._bring(entry, worker)
            summary = self._read(entry)
        if worker is None and ends is not None:
            self._summaries[entry.id] = (ends.head.digest, summary)
            while len(self._summaries) > MOST_SUMMARIES:
                self._summaries.popitem(last=False)
        return summary

    def _summary_in(
        self, entry: ThreadEntry, worker: str | None, ends: ThreadEnds
    ) -> ThreadSummary | None:
        """Return the summary that the lines at both ends say; None if they do not."""
        bundle, thread = entry.bundle, entry.id
        data = b"".join(ends.last)
        found = summary_of_end(
            bundle, thread, data, lambda: start_in(ends.first), locked=worker is not None
        )
        if found is None and _is_whole(ends):
            found = summary_of_lines(data, self._replica.files, bundle, thread, worker=worker)
        if found is not None and found.status in GOES_ON:
            return replace(found, problem=found.problem or self._problem_of(bundle))
        return found

    def _problem_of(self, bundle: BundleHash) -> str | None:
        """Return why no worker can load a bundle; None if it can. A list asks once for each."""
        if bundle in self._problems:
            return self._problems[bundle]
        problem = None
        try:
            self._replica.files.bring_bundle(bundle)
        except (NotFoundError, DamagedError) as exc:
            problem = str(exc)
        self._problems[bundle] = problem
        return problem

    def _read(self, entry: ThreadEntry) -> ThreadSummary:
        files = self._replica.files
        path = files.data_path(entry.bundle, entry.id)
        return self.with_problem(read_summary(files, entry.bundle, entry.id, path)[0])

    def _bring(self, entry: ThreadEntry, worker: str | None) -> None:
        """Bring a copy up to date. worker: which drives the thread; empty if it waits for one; None
        if none will drive it.
        """
        bundle, thread = entry.bundle, entry.id
        self._sweep()
        copy = self._copies.get(thread)
        if copy is not None and copy.is_damaged:
            self._drop(thread)  # it may have been repaired
            copy = None
        from_line = copy.lines if copy is not None else 0
        try:
            lines = list(lines_of(self._threads, bundle, thread, from_line=from_line))
        except DamagedError as damage:
            if copy is not None:
                self._drop(thread)
            self._bring_damaged(entry, damage)
            return
        if copy is None:
            self._problems.pop(bundle, None)
            problem = self._problem_of(bundle)  # the thread can be read without it
            notes = self._threads.notes(bundle, thread)
            path = self._replica.put_journal(bundle, thread, lines, notes)
            copy = self._copies[thread] = _Copy(bundle=bundle, path=path, problem=problem)
        elif lines:
            try:
                self._replica.add_lines(bundle, thread, lines)
            except BaseException:
                self._drop(thread)  # it may have a part of them
                raise
        copy.add(lines)
        copy.unlock()
        if worker or (worker is not None and self._read(entry).status in GOES_ON):
            self._show_live(copy, thread)

    def _bring_damaged(self, entry: ThreadEntry, damage: DamagedError) -> None:
        """Copy a thread as it is, if valid lines follow the damaged ones: the copy is corrupt, and
        can be shown and forked up to the damage.

        Raises:
            DamagedError: a copy would pass for whole, without the lines from *damage* on.
        """
        data = self._threads.read_damaged(entry.bundle, entry.id)
        try:
            is_corrupt = recover(data, entry.bundle, entry.id).corrupt
        except DamagedError:
            is_corrupt = False  # there is no start to be shown
        if not is_corrupt:
            raise damage
        lines = [line + b"\n" for line in data.split(b"\n") if line]
        notes = self._threads.notes(entry.bundle, entry.id)
        path = self._replica.put_journal(entry.bundle, entry.id, lines, notes)
        copy = self._copies[entry.id] = _Copy(bundle=entry.bundle, path=path, is_damaged=True)
        copy.add(lines)

    def _sweep(self) -> None:
        """Remove copies that were not looked at for long."""
        now_s = time.monotonic()
        if now_s - self._swept_s < SWEEP_S:
            return
        self._swept_s = now_s
        left = sum(copy.size_bytes for copy in self._copies.values())
        for thread, copy in sorted(self._copies.items(), key=lambda item: item[1].used_s):
            idle_s = now_s - copy.used_s
            if idle_s > IDLE_S or (idle_s > BUSY_S and left > MOST_BYTES):
                left -= copy.size_bytes
                self._drop(thread)
        named = set[str]().union(*(copy.named for copy in self._copies.values()))
        self._replica.sweep_blobs(named, before_s=time.time() - IDLE_S)

    def _drop(self, thread: ThreadId) -> None:
        copy = self._copies.pop(thread)
        copy.unlock()
        self._replica.drop_journal(copy.bundle, thread)

    def _show_live(self, copy: _Copy, thread: ThreadId) -> None:
        handle = os.open(copy.path, os.O_RDWR | os.O_CLOEXEC)
        if not lock.take(handle):
            os.close(handle)
            raise JournalBusy(f"thread {thread} is in use in {copy.path.parent}")
        copy.handle = handle


@dataclasses.dataclass(slots=True, kw_only=True)
class _Copy:
    """Copy of a thread. handle: holds the file's lock; None without one. named: the
    blobs that its lines name. used_s: when it was last looked at, by the monotonic clock. problem:
    why no worker can go on with the thread, if that is known. is_damaged: its lines were not
    checked.
    """

    bundle: BundleHash
    path: Path
    lines: int = 0
    size_bytes: int = 0
    handle: int | None = None
    named: set[str] = dataclasses.field(default_factory=set)
    used_s: float = 0.0
    problem: str | None = None
    is_damaged: bool = False

    def add(self, lines: Sequence[bytes]) -> None:
        """Note lines that were added to the file, and that it is used."""
        self.used_s = time.monotonic()
        self.lines += len(lines)
        for line in lines:
            self.size_bytes += len(line)
            self.named |= named_in(line)

    def unlock(self) -> None:
        if self.handle is not None:
            lock.release(self.handle)
            self.handle = None


def _is_whole(ends: ThreadEnds) -> bool:
    """Tell whether the last lines of a thread are all that it has."""
    return len(ends.last) == ends.head.lines


def _need_no_record(_lines: Sequence[bytes]) -> None:
    """Record nothing: controls are no steps."""
