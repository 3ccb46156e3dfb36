"""Debug logs of a shared store's threads. A worker writes that of a thread into the store when it
leaves the thread.

The log of a store is that of its newest threads and of those that workers have, `MOST_THREADS` of
each at most; of a thread that is taken up later it has the lines once its worker has left it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.ids import ThreadId

from ..stores.protocol import ThreadEntry, ThreadStorage
from ..threads.logs import LogLine, in_order, last, parsed_lines
from .dispatch import SharedStore

MOST_THREADS = 1000
MOST_KNOWN = 10_000
"""Threads whose lines are not printed again."""


class SharedThreadLog:
    """Reader of one thread's debug log (`LogReader`)."""

    def __init__(self, threads: ThreadStorage, entry: ThreadEntry) -> None:
        self._threads = threads
        self._entry = entry
        self._offset = 0

    def new_lines(self) -> list[LogLine]:
        """Return the whole lines since the last call; none of a thread that was removed."""
        entry = self._entry
        try:
            info = self._threads.notes(entry.bundle, entry.id).info
        except NotFoundError:
            return []
        start = self._offset if self._offset <= len(info) else 0  # it was replaced
        whole = info[start : info.rfind(b"\n") + 1]
        self._offset = start + len(whole)
        return parsed_lines(entry.id, whole)


class SharedStoreLog:
    """Reader of the debug logs of a store (`StoreLogReader`)."""

    def __init__(self, store: SharedStore, now_ms: int) -> None:
        """Args: now_ms: of a thread that is taken up later, older lines are left out."""
        self._store = store
        self._since_ms = now_ms
        self._looked_ms: int | None = None
        self._known: OrderedDict[ThreadId, SharedThreadLog] = OrderedDict()
        self._live: set[ThreadId] = set()

    def recent_lines(self, limit: int) -> list[LogLine]:
        """Return the last lines of the threads that workers have, and of as many others as lines
        are wanted: those that were started last.
        """
        self._looked_ms = self._store.queue.submitted(None).until_ms
        live = [one.entry for one in self._store.queue.driven(limit=MOST_THREADS)]
        self._live = {entry.id for entry in live}
        count = min(limit, MOST_THREADS)
        newest = self._store.threads.page(limit=count, newest_first=True) if count else []
        found = list(self._lines([*newest, *live]))
        return last(in_order(found), limit)

    def new_lines(self) -> list[LogLine]:
        """Return the lines of the threads that workers have left since the last call."""
        submitted = self._store.queue.submitted(self._looked_ms)
        self._looked_ms = submitted.until_ms
        entries = {entry.id: entry for entry in submitted.entries}
        for entry in entries.values():
            self._known.setdefault(entry.id, SharedThreadLog(self._store.threads, entry))
        watched = self._live | entries.keys()
        self._live = set(self._store.queue.pending(watched))
        found = self._read(watched - self._live)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return in_order(line for line in found if line.timestamp_ms >= self._since_ms)

    def _lines(self, entries: Collection[ThreadEntry]) -> Iterator[LogLine]:
        for entry in entries:
            self._known.setdefault(entry.id, SharedThreadLog(self._store.threads, entry))
        return self._read({entry.id for entry in entries})

    def _read(self, threads: Collection[ThreadId]) -> Iterator[LogLine]:
        for thread in sorted(threads):
            if thread in self._known:
                yield from self._known[thread].new_lines()
