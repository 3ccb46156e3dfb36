"""Debug logs of threads, read while workers write them: the lines of one thread, or of all threads
in the order of their time.

A log may be cut or replaced while it is read; then it is read from its beginning. It may be missing
until a worker writes its first line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.order import START, OrderPlace
from uncaged_bundles.storage.store import Store

from ..journal import lock
from ..journal.codec import CodecError, decode
from .names import locked_journals

T = TypeVar("T")
MAX_READ_BYTES = 4 << 20
"""Of one log at a time; one log is a quarter of it at most, unless it was written by others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """Line of a thread's debug log."""

    thread_id: ThreadId
    tag: str
    content: str
    timestamp_ms: int


class LogReader(Protocol):
    """Reader of the debug log of a thread, in a directory or a shared store."""

    def new_lines(self) -> list[LogLine]:
        """Return the whole lines since the last call. Lines of another form are left out."""


class StoreLogReader(LogReader, Protocol):
    """Reader of the debug logs of a store's threads."""

    def recent_lines(self, limit: int) -> list[LogLine]:
        """Return the last lines; `new_lines` goes on from there."""


class ThreadLog:
    """Reader of one thread's debug log in a directory (`LogReader`)."""

    def __init__(self, store: Store, bundle: BundleHash, thread: ThreadId) -> None:
        self.bundle = bundle
        self.thread = thread
        self._path = store.info_path(bundle, thread)
        self._inode = 0
        self._offset = 0

    def new_lines(self) -> list[LogLine]:
        """Return the whole lines since the last call. Lines of another form are left out."""
        with suppress(FileNotFoundError):
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                found = os.fstat(fd)
                if found.st_ino != self._inode or found.st_size < self._offset:
                    self._inode, self._offset = found.st_ino, 0
                data = os.pread(fd, MAX_READ_BYTES, self._offset)
            finally:
                os.close(fd)
            whole = data[: data.rfind(b"\n") + 1]
            self._offset += len(whole)
            return parsed_lines(self.thread, whole)
        return []


class StoreLog:
    """Reader of the debug logs of a directory, for those threads that workers took up
    (`StoreLogReader`).
    """

    def __init__(self, store: Store, now_ms: int) -> None:
        """Args: now_ms: of a thread that is taken up later, older lines are left out."""
        self._store = store
        self._since_ms = now_ms
        self._place: OrderPlace = START
        self._known: dict[ThreadId, ThreadLog] = {}
        self._live: set[ThreadId] = set()

    def recent_lines(self, limit: int) -> list[LogLine]:
        """Return the last lines of the live threads, and of as many others as lines are wanted:
        those that were taken up last.
        """
        tail = self._store.noted_since(START)
        if tail is None:
            return []
        self._place = tail.place
        found: list[LogLine] = []
        live = locked_journals(self._store)
        for bundle, thread in dict.fromkeys([*last(tail.taken_up, limit), *live]):
            log = self._known[thread] = ThreadLog(self._store, bundle, thread)
            found += log.new_lines()
        self._live = {thread for _, thread in live}
        return last(in_order(found), limit)

    def new_lines(self) -> list[LogLine]:
        """Return the lines since the last call."""
        # before the logs: a thread that is left now had its last line written
        watched = self._live
        live = {thread for thread in watched if self._is_live(self._known[thread])}
        tail = self._store.noted_since(self._place)
        if tail is None:  # the log of order was replaced
            tail = self._store.noted_since(START)
        if tail is not None:
            self._place = tail.place
            for bundle, thread in tail.taken_up:
                live.add(thread)
                if thread not in self._known:
                    self._known[thread] = ThreadLog(self._store, bundle, thread)
        found = [line for thread in watched | live for line in self._known[thread].new_lines()]
        self._live = live
        return in_order(line for line in found if line.timestamp_ms >= self._since_ms)

    def _is_live(self, log: ThreadLog) -> bool:
        return lock.is_live(self._store.data_path(log.bundle, log.thread))


def last(items: Sequence[T], limit: int) -> list[T]:
    """Return the last *limit* items."""
    return list(items[max(0, len(items) - limit) :])


def in_order(lines: Iterable[LogLine]) -> list[LogLine]:
    """Return lines in the order of their time, those of one thread in their own order."""
    return sorted(lines, key=lambda line: line.timestamp_ms)


def parsed_lines(thread: ThreadId, data: bytes) -> list[LogLine]:
    """Return the lines of a part of a log; those of another form are left out."""
    return [found for line in data.splitlines() if (found := _parsed(thread, line)) is not None]


def _parsed(thread: ThreadId, data: bytes) -> LogLine | None:
    try:
        record = decode(data)
    except CodecError:
        return None
    match record:
        case {"tag": str(tag), "content": str(content), "timestamp": int(timestamp_ms)}:
            return LogLine(thread_id=thread, tag=tag, content=content, timestamp_ms=timestamp_ms)
        case _:
            return None
