"""Detection of failures by a full or broken disk, from a program's output and from the file
system.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CODES = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
SIGNS = tuple(map(os.strerror, CODES))
LEAST_BYTES = 16 << 10
"""A disk with less free space counts as full."""


def named_in(*texts: str) -> str | None:
    """Return the line of a program's output that names a full or broken disk; None if there is
    none.
    """
    for text in texts:
        for line in text.splitlines():
            if any(sign in line for sign in SIGNS):
                return line.strip()[-500:]
    return None


def full_disk(places: Iterable[Path]) -> str | None:
    """Return a message for the first directory whose disk is full; None if none is."""
    for place in places:
        with suppress(OSError):
            found = os.statvfs(place)
            if found.f_bavail * found.f_frsize < LEAST_BYTES or (
                found.f_files and not found.f_favail
            ):
                return f"the disk of {place} is full"
    return None
