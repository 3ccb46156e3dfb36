"""Signs that a program failed because of the machine's disk: the system's own words in what it printed, or a disk without space."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CODES = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
SIGNS = tuple(map(os.strerror, CODES))
LEAST_BYTES = 16 << 10
"""With less than this nothing more can be done on a disk."""


def named_in(*texts: str) -> str | None:
    """The line in which a program names a full or broken disk."""
    for text in texts:
        for line in text.splitlines():
            if any(sign in line for sign in SIGNS):
                return line.strip()[-500:]
    return None


def full_disk(places: Iterable[Path]) -> str | None:
    """The first of some directories whose disk has no room left, in words."""
    for place in places:
        with suppress(OSError):
            found = os.statvfs(place)
            if found.f_bavail * found.f_frsize < LEAST_BYTES or (found.f_files and not found.f_favail):
                return f"the disk of {place} is full"
    return None
