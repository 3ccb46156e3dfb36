"""Threads of a directory: journals, debug logs, notes of origin, markers, the order of starts.

A thread without an end that is written here comes from another store: it is marked
(`journal.copied`) until a worker takes it up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Generator, Iterable
from contextlib import suppress
from pathlib import Path

from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError
from uncaged_bundles.ids import BundleHash, ThreadId, is_thread_id
from uncaged_bundles.storage.files import held, read_if_there, write_atomically
from uncaged_bundles.storage.store import REMOVED_SUFFIX, Store

from ...journal import archive, chain, copied, durable, lock, pins
from ...journal.chained import ChainedLines, parse_lines
from ...journal.file import JournalFile
from ...journal.journal import JournalBusy
from ...journal.lines import END
from ...journal.origin import path_beside
from ..chains import ChainCheck, joined
from ..protocol import ALL, Candidates, ThreadEnds, ThreadEntry, ThreadHead, ThreadNotes
from .owners import FileOwner

_POLL_S = 0.02


class DirectoryThreads:
    """The folder ``logs``, as `ThreadStorage`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def start(self, entry: ThreadEntry, lines: Iterable[bytes], notes: ThreadNotes) -> None:
        check = ChainCheck(f"thread {entry.id}", chain.seed(entry.bundle, entry.id))
        data = joined(check, lines)
        path = self._store.data_path(entry.bundle, entry.id)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with held(self._store.logs, alone=True):
            if self._store.journal_of(entry.id) is not None:
                raise RefusedError(f"the store has a thread {entry.id} already")
            if entry.place < 0:
                self._store.note_taken_up(entry.bundle, entry.id)
            else:
                self._store.note_start(entry.id, by_thread=entry.by_thread)
            # crash here: an id without a thread, and files beside no journal, which nothing reads
            if notes.origin is None:
                path_beside(path).unlink(missing_ok=True)  # of an attempt that a crash ended
            else:
                write_atomically(path_beside(path), notes.origin)
            if _is_ended(data):
                copied.unmark(path)
            else:
                copied.mark(path)
            if notes.info:
                write_atomically(self._store.info_path(entry.bundle, entry.id), notes.info)
            write_atomically(path, data)
        if entry.archived:
            # crash here: the thread is whole, and not packed
            self.archive(entry.bundle, entry.id)

    def open(self, bundle: BundleHash, thread: ThreadId, *, take_over: bool = False) -> FileOwner:  # noqa: ARG002 - a dead owner holds no journal's lock
        path = self._path(bundle, thread)
        if archive.is_archived(path):
            archive.restore(path)
        journal = JournalFile.open(self._store, bundle, thread)
        history = journal.history
        head = ThreadHead(lines=history.lines, size_bytes=history.good_bytes, digest=history.digest)
        return FileOwner(
            journal, f"thread {thread}", head, ended=history.end is not None, journal=path
        )

    def read(
        self, bundle: BundleHash, thread: ThreadId, *, from_line: int = 0, limit: int = 0
    ) -> list[bytes]:
        lines = self._lines(bundle, thread).lines
        return lines[from_line : from_line + limit] if limit else lines[from_line:]

    def read_damaged(self, bundle: BundleHash, thread: ThreadId) -> bytes:
        return durable.read(self._path(bundle, thread)).data

    def follow(
        self, bundle: BundleHash, thread: ThreadId, *, from_line: int = 0, timeout_s: float
    ) -> Generator[list[bytes]]:
        size = -1
        quiet_since_s = time.monotonic()
        while True:
            found = self._size(bundle, thread)
            lines = self.read(bundle, thread, from_line=from_line) if found != size else []
            size = found
            if lines or time.monotonic() - quiet_since_s >= timeout_s:
                from_line += len(lines)
                yield lines
                quiet_since_s = time.monotonic()
            else:
                time.sleep(min(_POLL_S, timeout_s))

    def head(self, bundle: BundleHash, thread: ThreadId) -> ThreadHead:
        found = self._lines(bundle, thread)
        return ThreadHead(lines=len(found.lines), size_bytes=found.good_bytes, digest=found.digest)

    def heads(self, entries: Collection[ThreadEntry]) -> dict[ThreadId, ThreadHead]:
        found: dict[ThreadId, ThreadHead] = {}
        for one in entries:
            with suppress(NotFoundError):
                found[one.id] = self.head(one.bundle, one.id)
        return found

    def ends(self, entries: Collection[ThreadEntry], *, limit: int) -> dict[ThreadId, ThreadEnds]:
        ends = {}
        for one in entries:
            with suppress(NotFoundError, DamagedError):
                found = self._lines(one.bundle, one.id)
                head = ThreadHead(
                    lines=len(found.lines), size_bytes=found.good_bytes, digest=found.digest
                )
                ends[one.id] = ThreadEnds(
                    head=head, first=found.lines[0], last=found.lines[-limit:]
                )
        return ends

    def notes(self, bundle: BundleHash, thread: ThreadId) -> ThreadNotes:
        path = self._path(bundle, thread)
        return ThreadNotes(
            info=read_if_there(self._store.info_path(bundle, thread)) or b"",
            origin=read_if_there(path_beside(path)),
        )

    def replace_info(self, bundle: BundleHash, thread: ThreadId, info: bytes) -> None:
        self._path(bundle, thread)
        write_atomically(self._store.info_path(bundle, thread), info)

    def archive(self, bundle: BundleHash, thread: ThreadId) -> None:
        path = self._path(bundle, thread)
        if archive.is_archived(path):
            return
        with lock.holding(path) as handle:
            if handle is None:
                raise JournalBusy(f"thread {thread} is in use by another process")
            archive.compress_all([(path, handle)])

    def locate(self, prefix: str) -> ThreadEntry:
        bundle, thread, path = self._store.locate_thread(prefix)
        children = self._store.child_threads()
        return self._entry(bundle, thread, path.name, self._store.start_order(), children)

    def page(
        self,
        *,
        after: ThreadEntry | None = None,
        limit: int,
        newest_first: bool = False,
        among: Candidates = ALL,
    ) -> list[ThreadEntry]:
        del among  # nothing here is cheaper than the caller's look
        places, children = self._store.start_order(), self._store.child_threads()
        entries = [
            self._entry(bundle, thread, path, places, children)
            for bundle, thread, path in self._store.find_journals()
        ]
        entries.sort(key=_key, reverse=newest_first)
        if after is not None:
            entries = [
                entry
                for entry in entries
                if (_key(entry) < _key(after) if newest_first else _key(entry) > _key(after))
            ]
        return entries[:limit]

    def removed(self) -> list[tuple[BundleHash, ThreadId]]:
        return sorted(
            (bundle, ThreadId(thread))
            for bundle, names in self._store.list_logs()
            for name in names
            if is_thread_id(thread := name.removesuffix(REMOVED_SUFFIX)) and thread != name
        )

    def is_removed(self, bundle: BundleHash | None, thread: ThreadId) -> bool:
        if bundle is None:
            return any(found == thread for _, found in self.removed())
        return self._store.data_path(bundle, thread).with_name(f"{thread}{REMOVED_SUFFIX}").exists()

    def mark_removed(self, bundle: BundleHash, thread: ThreadId) -> None:
        self._store.mark_removed(bundle, thread)

    def pinned(self) -> list[tuple[BundleHash, ThreadId]]:
        return pins.pinned_threads(self._store)

    def set_pinned(self, bundle: BundleHash, thread: ThreadId, *, pinned: bool) -> None:
        pins.set_pinned(self._store, bundle, thread, pinned=pinned)

    def _entry(
        self,
        bundle: BundleHash,
        thread: ThreadId,
        path: str,
        places: dict[str, int],
        children: set[str],
    ) -> ThreadEntry:
        return ThreadEntry(
            bundle=bundle,
            id=thread,
            place=places.get(thread, -1),
            by_thread=thread in children,
            archived=path.endswith(archive.SUFFIX),
        )

    def _path(self, bundle: BundleHash, thread: ThreadId) -> Path:
        """Return the journal, plain or packed."""
        plain = self._store.data_path(bundle, thread)
        packed = plain.with_name(plain.name + archive.SUFFIX)
        for path in (plain, packed, plain):  # it may be unpacked meanwhile
            if path.exists():
                return path
        raise NotFoundError(f"no thread {thread} of bundle {bundle}")

    def _lines(self, bundle: BundleHash, thread: ThreadId) -> ChainedLines:
        path = self._path(bundle, thread)
        return parse_lines(path, durable.read(path).data, chain.seed(bundle, thread))

    def _size(self, bundle: BundleHash, thread: ThreadId) -> int:
        try:
            return os.stat(self._path(bundle, thread)).st_size  # noqa: PTH116 - fifty times a second
        except FileNotFoundError:
            return -1  # packed or unpacked just now


def _is_ended(data: bytes) -> bool:
    """Tell whether the last line of a whole journal ends it."""
    return data.startswith(END, data.rfind(b"\n", 0, -1) + 1)


def _key(entry: ThreadEntry) -> tuple[int, str]:
    return entry.place, entry.id
