"""Bytecode of the libraries and of the unchanged repository, from the planner's test runs for those
of the coder and the reviewer.

Code of the repository may have written it: it is read in the sandbox alone, in the same thread, and
no run of a candidate can write it. An approving reviewer and a stuck coder remove it; after any
other end it stays, at most `MAX_BYTES`, until the thread is pruned.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

NAME = "repair-bytecode"
ENTRY = re.compile(r"[0-9a-f]{32}")
MAX_ENTRIES = 10_000
MAX_BYTES = 64 << 20


def kept_bytecode(scratch: Path) -> Path | None:
    """Return the directory that an earlier answer of the thread has kept in *scratch*; None if
    there is none.
    """
    path = scratch / NAME
    return path if path.is_dir() else None


def keep_bytecode(filled: Path, scratch: Path) -> None:
    """Copy the entries of *filled*, to which tests may still write, into *scratch*. Only regular
    files are copied; if there are none, too many, or one cannot be copied, nothing is kept.
    """
    drop_bytecode(scratch)
    new = scratch / f"{NAME}.new"
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir()
        new.chmod(0o755)
        if _copy(filled, new):
            new.rename(scratch / NAME)
    except OSError:  # the answer needs no bytecode
        return
    finally:
        shutil.rmtree(new, ignore_errors=True)


def drop_bytecode(scratch: Path) -> None:
    """Remove what was kept in *scratch*."""
    shutil.rmtree(scratch / NAME, ignore_errors=True)


def _copy(source: Path, target: Path) -> bool:
    """Copy the entries; return False if there are too many, too large ones, or none."""
    directory = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        names = [name for name in os.listdir(directory) if ENTRY.fullmatch(name)]  # noqa: PTH208
        left = MAX_BYTES if len(names) <= MAX_ENTRIES else 0
        for name in names:
            data = _content(directory, name, left + 1)
            left -= len(data)
            if left < 0:
                return False
            if data:
                (target / name).write_bytes(data)
                (target / name).chmod(0o644)
    finally:
        os.close(directory)
    return any(target.iterdir())


def _content(directory: int, name: str, limit: int) -> bytes:
    """Return the beginning of a regular file; of anything else, nothing."""
    try:
        # a link is not followed, and a pipe is not waited for
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    except OSError:
        return b""
    try:
        regular = stat.S_ISREG(os.fstat(handle).st_mode)
        return os.read(handle, limit) if regular else b""
    finally:
        os.close(handle)
