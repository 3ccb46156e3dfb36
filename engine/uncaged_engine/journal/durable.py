"""Reader of a journal's durable bytes: those that its writer, or the reader itself, has flushed and
that survive a power cut.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from uncaged_bundles.errors import os_problem
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.files import read_range

from . import archive, trouble
from .recover import flushed_at_least
from .trouble import Trouble

CANNOT_BE_FLUSHED = frozenset((errno.EINVAL, errno.ENOSYS))
"""Errors of a file system that has nothing to flush."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Durable:
    """Durable part of a journal.

    data: its bytes. trouble: why the file shows more than that, or why its owner left it.
    """

    data: bytes
    trouble: Trouble | None


def read(path: Path, *, reported: int = 0, known: Trouble | None = None) -> Durable:
    """Bring a journal to disk and read it, wherever it is by now. Its lock is not taken.

    A killed worker may have left lines in memory that were never flushed; a flush that failed once
    may succeed the next time without having written them, so after one only what was flushed before
    counts.

    Args:
        reported: so many bytes are known to be flushed. known: what the journal's last owner
            reported when it left it.
    Raises:
        NotFoundError, DamagedError: as `archive.contents`.
    """
    plain = archive.plain_of(path)
    found = trouble.find(plain) or known
    try:
        fd = os.open(plain, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Durable(data=archive.contents(path), trouble=None)
    try:
        size = os.fstat(fd).st_size  # before the flush: a new owner may write meanwhile
        if found is None or found.on_disk is None:
            problem = _flush(fd, plain)
            if problem is not None:
                found = Trouble(
                    message=problem,
                    on_disk=max(reported, flushed_at_least(read_range(fd, 0, size))),
                )
                trouble.write(plain, found)
        data = read_range(
            fd, 0, size if found is None or found.on_disk is None else min(size, found.on_disk)
        )
    finally:
        os.close(fd)
    return Durable(data=data, trouble=found)


def _flush(fd: int, path: Path) -> str | None:
    """Flush the file; return the problem, if there was one."""
    try:
        os.fdatasync(fd)
    except OSError as exc:
        if exc.errno in CANNOT_BE_FLUSHED:
            return None
        return f"its last lines may not be on disk: the flush failed ({os_problem(exc, path)}); repair the disk, then `resume`"
    return None
