"""Journal in a file. Its owner holds the file's lock; lines for which `flush` returned are on disk.

Rule 1: one owner at a time; the lock is taken before the first byte is read.
Rule 2: a write or flush that failed is final for this handle: the kernel may have dropped the
pages, so nothing later can be trusted. A note says so to observers, and the next owner writes the
doubtful bytes again before it goes on.
Rule 3: a torn tail is kept aside before it is cut.
Rule 4: a closed handle takes nothing more: the number of its descriptor may be another file's by
now.
Rule 5: nothing but a resume follows an end, however late another request arrives.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.files import read_range, sync_directory, write_atomically
from uncaged_bundles.storage.store import Store

from . import chain, lines, lock, trouble
from .blobs import BlobDirectory, Blobs
from .journal import JournalBroken, JournalBusy
from .origin import ThreadOrigin
from .recover import History, flushed_at_least, recover
from .trouble import Trouble

NEXT_STEP = "free space on the disk or repair it, then `resume`"


class JournalFile:
    """A journal in a file. See `Journal` for what its methods promise."""

    def __init__(
        self,
        path: Path,
        fd: int,
        history: History,
        recover: Callable[[bytes], History],
        *,
        blobs: Blobs,
        kept_aside: Path | None = None,
    ) -> None:
        """Args: recover: reads the thread's lines. kept_aside: where the damaged tail is that was
        cut.
        """
        self.path = path
        self.place = str(path)
        self.history = history
        self.blobs = blobs
        self._recover = recover
        self.kept_aside = kept_aside
        self.trouble: Trouble | None = None
        self.size_bytes = history.good_bytes
        self._blob_bytes = history.blob_bytes
        self.flushed_bytes = 0  # the lines of a killed owner may be in memory only
        self.on_flush: Callable[[int], None] = _ignore
        self.on_flush_time: Callable[[float], None] | None = None
        self._fd = fd
        self._digest = history.digest
        self._is_broken = False
        self._has_note = trouble.find(path) is not None
        self._ended = history.end is not None
        self._lock = threading.Lock()

    @classmethod
    def open(cls, store: Store, bundle: BundleHash, thread: ThreadId) -> JournalFile:
        """Lock the journal, read it, and cut a torn tail.

        Raises:
            JournalBusy: another process writes it.
            NotFoundError: it was packed or removed since it was looked up.
            DamagedError: it is corrupt, or has no start record.
        """
        path = store.data_path(bundle, thread)
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError as exc:
            raise NotFoundError(
                f"thread {thread} was archived or removed just now; look at it again"
            ) from exc
        except OSError as exc:
            raise DamagedError(f"thread {thread}: cannot open {path}: {exc.strerror}") from exc
        try:
            if not lock.take(fd):
                raise JournalBusy(f"thread {thread} is in use by another process")
            # between opening and locking it may have been packed: its lines would be lost
            if not lock.is_named(fd):
                raise JournalBusy(
                    f"thread {thread} was archived or removed just now; look at it again"
                )
            # locked, and nothing written yet: see `state.index`
            store.note_taken_up(bundle, thread)
            # crash here: named as locked, and nothing written; the next reader finds the lock free
            rewrite_doubtful(fd, path)  # what is read below must outlast a power cut
            read = partial(recover, bundle=bundle, thread=thread)
            history = read(_read_all(fd))
            kept_aside = None if history.damage is None else _cut(fd, path, thread, history)
            blobs = BlobDirectory(store.blobs)
            return cls(path, fd, history, read, blobs=blobs, kept_aside=kept_aside)
        except OSError as exc:
            os.close(fd)
            raise JournalBroken(
                f"{path}: cannot be taken up ({exc.strerror or exc}); {NEXT_STEP}"
            ) from exc
        except BaseException:
            os.close(fd)
            raise

    def append(self, body: bytes, *, flush: bool = False) -> bytes:
        """Seal an open record and write it; without *flush* it survives a killed process, not yet a
        power cut.
        """
        with self._lock:
            if self._fd < 0 or self._is_broken:
                self._refuse()
            if self._ended and not body.startswith(lines.RESUME):
                raise JournalBusy(
                    f"{self.path.name}: the thread has ended just now; look at it again"
                )
            # the digest of this handle moves on only after the whole line was written
            line, digest = chain.seal(self._digest, body)
            size = len(line)
            try:
                written = os.write(self._fd, line)
                while written < size:
                    # crash here, or a full disk: a torn tail, which the next owner cuts
                    written += os.write(self._fd, line[written:])
            except OSError as exc:
                raise self._break("write", exc.strerror or str(exc)) from exc
            self._digest = digest
            self._ended = body.startswith(lines.END)
            self.size_bytes += size
            if line.rfind(lines.BLOB_KEY, -lines.BLOB_ROOM_BYTES) >= 0:
                self._blob_bytes += lines.blob_bytes(line)
            if not flush:
                return line
            durable = self._sync()
        if self._has_note:
            self._clear_note()
        # outside the lock: a follower's socket must not delay another thread's pause or kill
        self.on_flush(durable)
        return line

    def kept_bytes(self) -> int:
        return self.size_bytes + self._blob_bytes

    def flush(self) -> None:
        with self._lock:
            if self._fd < 0 or self._is_broken:
                self._refuse()
            if self.size_bytes == self.flushed_bytes:
                return
            size = self._sync()
        if self._has_note:
            self._clear_note()
        self.on_flush(size)

    def reread(self) -> History:
        return self._recover(self.read())

    def origin(self) -> ThreadOrigin | None:
        return ThreadOrigin.of(self.path)

    def read(self, start: int = 0) -> bytes:
        return _read_all(self._fd, start)

    def note(self, why: str) -> Trouble:
        if self.trouble is None:
            self.trouble = Trouble(message=why)
            trouble.write(self.path, self.trouble)
        return self.trouble

    def close(self) -> None:
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def _sync(self) -> int:
        """Flush what was written; the lock is held. Return how many bytes are durable now."""
        begin_s = 0.0 if self.on_flush_time is None else time.monotonic()
        try:
            os.fdatasync(self._fd)
        except OSError as exc:
            raise self._break("flush", exc.strerror or str(exc)) from exc
        if self.on_flush_time is not None:
            self.on_flush_time(time.monotonic() - begin_s)
        self.flushed_bytes = size = self.size_bytes
        return size

    def _clear_note(self) -> None:
        """Remove the note of an earlier failure, which is over once a flush succeeded."""
        self._has_note = False
        trouble.clear(self.path)

    def _refuse(self) -> NoReturn:
        if self._fd >= 0 and self.trouble is not None:
            raise JournalBroken(self.trouble.message)
        raise JournalBusy(f"{self.path.name}: the thread was left just now; look at it again")

    def _break(self, what: str, why: str) -> JournalBroken:
        self._is_broken = True
        on_disk = None
        # a write that failed leaves a torn tail, which shows; after a flush every byte looks whole
        if what == "flush":
            with suppress(OSError):
                on_disk = self.flushed_bytes or flushed_at_least(_read_all(self._fd)) or None
        self.trouble = Trouble(
            message=f"{self.path}: the {what} failed ({why}); {NEXT_STEP}", on_disk=on_disk
        )
        trouble.write(self.path, self.trouble)
        return JournalBroken(self.trouble.message)


def create(
    path: Path, body: bytes, bundle: BundleHash, thread: ThreadId, *, more: bytes = b""
) -> None:
    """Make a new journal with its start record durable, under its final name only when it is whole.

    Args:
        body: the open start record. more: sealed lines that follow it (a fork's copy).
    """
    line, _ = chain.seal(chain.seed(bundle, thread), body)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with os.scandir(path.parent) as entries:
            is_new = next(entries, None) is None
        if is_new:  # the writer of an entry that is there has done this before
            sync_directory(path.parent.parent)
    except OSError as exc:
        raise JournalBroken(
            f"{path.parent}: cannot be made ({exc.strerror or exc}); nothing was started"
        ) from exc
    write_atomically(path, line + more)


def _ignore(_size: int) -> None:
    """Report to no follower."""


def _read_all(fd: int, start: int = 0) -> bytes:
    return read_range(fd, start, os.fstat(fd).st_size)


def rewrite_doubtful(fd: int, path: Path) -> None:
    """Write the bytes after a failed flush again: they may not be on disk, and the kernel may count
    their pages as written, so that a flush alone would do nothing.
    """
    found = trouble.find(path)
    if found is None or found.on_disk is None:
        return
    tail = _read_all(fd, found.on_disk)
    writing = os.open(path, os.O_WRONLY | os.O_CLOEXEC)  # *fd* only appends
    try:
        os.pwrite(writing, tail, found.on_disk)
        os.fdatasync(writing)
    finally:
        os.close(writing)
    trouble.clear(path)


def _cut(fd: int, path: Path, thread: ThreadId, history: History) -> Path | None:
    """Cut a damaged tail; return where it is kept."""
    damage = history.damage
    if damage is None:
        return None
    if not damage.tail:
        where = f"{path}:{damage.line}: {damage.reason}"
        raise DamagedError(
            f"thread {thread} is corrupt at {where}; `fork {thread} --at {len(history.steps)}` keeps the steps before it"
        )
    return cut_tail(fd, path, damage.offset)


def cut_tail(fd: int, path: Path, offset: int) -> Path:
    """Cut the file at *offset*; return where its tail is kept."""
    aside = path.with_name(f"{path.name}.torn-{offset}")
    write_atomically(aside, _read_all(fd, offset))
    # crash here: the tail is kept aside and still there; the next owner cuts it again
    os.ftruncate(fd, offset)
    os.fdatasync(fd)
    return aside
