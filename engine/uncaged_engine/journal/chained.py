"""Chained JSON Lines file with one owner at a time, which holds the file's lock.

Lines for which `append` returned survive the owner's death; lines for which `flush` returned
survive a power cut. The rules about failed flushes and torn tails are those of a journal.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Self

from uncaged_bundles.errors import DamagedError, NotFoundError, os_problem
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.files import read_if_there, read_range, write_atomically

from . import chain, lock, trouble
from .file import cut_tail, rewrite_doubtful
from .journal import JournalBroken, JournalBusy
from .lines import MAX_LINE_BYTES
from .trouble import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainedLines:
    """Whole lines of a chained file, each with its LF.

    good_bytes: their size; the rest of the file is a torn tail. digest: that of the last one.
    """

    lines: list[bytes]
    good_bytes: int
    digest: bytes


class ChainedFile:
    """An open, locked chained file."""

    def __init__(self, path: Path, fd: int, found: ChainedLines) -> None:
        self.path = path
        self.lines = found.lines
        """The whole lines that the file had when it was opened."""
        self._fd = fd
        self._digest = found.digest
        self._size_bytes = found.good_bytes
        # the lines of a killed owner may be in memory only
        self._flushed_bytes = 0
        self._is_broken = False
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path, seed: bytes) -> Self | None:
        """Lock the file, read it, and cut a torn tail. Return None if another owner has the lock.

        Raises:
            NotFoundError: there is no such file (any more).
            DamagedError: valid lines follow a damaged one, or the first line is damaged.
            JournalBroken: the disk refuses to read or cut it.
        """
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError as exc:
            raise NotFoundError(f"{path} does not exist") from exc
        except OSError as exc:
            raise DamagedError(f"cannot open {os_problem(exc, path)}") from exc
        try:
            if not lock.take(fd):
                os.close(fd)
                return None
            if not lock.is_named(fd):
                raise NotFoundError(f"{path} was removed just now")
            # first: the lines that are read below are those that the next power cut would leave
            rewrite_doubtful(fd, path)
            data = read_range(fd, 0, os.fstat(fd).st_size)
            found = parse_lines(path, data, seed)
            if found.good_bytes < len(data):
                cut_tail(fd, path, found.good_bytes)
            return cls(path, fd, found)
        except OSError as exc:
            os.close(fd)
            raise JournalBroken(f"cannot use {os_problem(exc, path)}") from exc
        except BaseException:
            os.close(fd)
            raise

    def append(self, body: bytes, *, flush: bool = False) -> bytes:
        """Seal an open record and write it; return the sealed line.

        Args:
            flush: make it durable as well, with all that was appended before.
        Raises:
            JournalBusy: the file was closed. JournalBroken: the disk refuses; from then on every
                call does.
            ValueError: the line would be longer than `MAX_LINE_BYTES`.
        """
        if len(body) + chain.SEAL_BYTES > MAX_LINE_BYTES:
            raise ValueError(f"a line of {len(body)} bytes; {MAX_LINE_BYTES} are the most")
        with self._lock:
            self._require_usable()
            line, digest = chain.seal(self._digest, body)
            try:
                written = os.write(self._fd, line)
                while written < len(line):
                    written += os.write(self._fd, line[written:])
            except OSError as exc:
                raise self._break("write", exc) from exc
            self._digest = digest
            self._size_bytes += len(line)
            if flush:
                self._sync()
        return line

    def flush(self) -> None:
        """Make everything durable that was appended so far. Raises: as `append`."""
        with self._lock:
            self._require_usable()
            if self._flushed_bytes < self._size_bytes:
                self._sync()

    def close(self) -> None:
        """Release the lock. Idempotent."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def _sync(self) -> None:
        try:
            os.fdatasync(self._fd)
        except OSError as exc:
            raise self._break("flush", exc) from exc
        self._flushed_bytes = self._size_bytes

    def _require_usable(self) -> None:
        if self._fd < 0:
            raise JournalBusy(f"{self.path.name} was closed just now; try again")
        if self._is_broken:
            raise JournalBroken(f"{self.path}: an earlier write or flush failed; repair the disk")

    def _break(self, what: str, problem: OSError) -> JournalBroken:
        """Refuse further lines. After a failed flush a note tells the next owner which bytes may
        not be on disk.
        """
        self._is_broken = True
        message = f"{self.path}: the {what} failed ({problem.strerror or problem}); free space on the disk or repair it"
        if what == "flush":
            trouble.write(self.path, Trouble(message=message, on_disk=self._flushed_bytes))
        return JournalBroken(message)


def create_chained(path: Path, body: bytes, seed: bytes) -> None:
    """Make a chained file with its first line, durable under its name only when it is whole."""
    write_atomically(path, chain.seal(seed, body)[0])


def read_chained(path: Path, seed: bytes) -> ChainedLines:
    """Read the whole lines of a file that another process may own, without its lock.

    Raises: as `ChainedFile.open`.
    """
    data = read_if_there(path)
    if data is None:
        raise NotFoundError(f"{path} does not exist")
    return parse_lines(path, data, seed)


def parse_lines(path: Path, data: bytes, seed: bytes) -> ChainedLines:
    """Return the whole lines of *data*; what follows them is a torn tail.

    Raises:
        DamagedError: valid lines follow a damaged one, or there is no whole first line.
    """
    found: list[bytes] = []
    previous, position = seed, 0
    while (after := data.find(b"\n", position) + 1) > 0:
        line = data[position:after]
        digest = chain.check(previous, line)
        if digest is None:
            break
        found.append(line)
        previous, position = digest, after
    if not found or (position < len(data) and chain.something_follows(data, position, previous)):
        raise DamagedError(
            f"{path}:{len(found) + 1}: the line was changed or damaged; nothing was written to the file"
        )
    return ChainedLines(lines=found, good_bytes=position, digest=previous)
