"""Locks on journals: a thread is alive exactly while a process holds the lock on its journal.

The lock belongs to the open file description (`F_OFD_SETLK`), not to a process: it ends with the
last descriptor, whatever kills its owner, and no recycled pid can look like one. Observers ask with
`F_OFD_GETLK` and never take it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LAYOUT = "hhqqi4x"  # struct flock on 64-bit Linux: type, whence, start, length, pid
_SET = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
_GET = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)
_WHOLE_FILE = struct.pack(_LAYOUT, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
_UNLOCKED = struct.pack(_LAYOUT, fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0)


def take(fd: int) -> bool:
    """Take the write lock on the whole file; False if another holds it."""
    try:
        fcntl.fcntl(fd, _SET, _WHOLE_FILE)
    except OSError as exc:
        if exc.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def release(fd: int) -> None:
    """Release the lock and close the file. A close alone would leave the lock to a child process
    that is being started by another thread of execution, until it runs its program.
    """
    fcntl.fcntl(fd, _SET, _UNLOCKED)
    os.close(fd)


def is_held(fd: int) -> bool:
    """Tell whether another open file holds the lock."""
    answer = fcntl.fcntl(fd, _GET, _WHOLE_FILE)
    return bool(struct.unpack(_LAYOUT, answer)[0] != fcntl.F_UNLCK)


def is_live(path: Path | str) -> bool:
    """Tell whether a process holds the lock of the journal at *path*. A missing file is not
    alive.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return is_held(fd)
    finally:
        os.close(fd)


def is_named(fd: int) -> bool:
    """Tell whether the open file still has a name. One that was packed or removed after it was
    opened has none, and its next lines would be lost.
    """
    return os.fstat(fd).st_nlink > 0


@contextmanager
def holding(path: Path) -> Iterator[int | None]:
    """Hold the lock of the journal at *path*, plain or packed, and yield its descriptor; None if
    another process holds it, or if it is not there (any more).
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield fd if take(fd) and is_named(fd) else None
    finally:
        os.close(fd)
