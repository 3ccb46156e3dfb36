"""Ownership of the worktree: as root, commands run as a separate user, who owns the worktree only while one runs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from uncaged_engine.services.sandbox import ScratchUser, change_owners, identities_of


@contextmanager
def owned_by(top: Path, user: ScratchUser) -> Iterator[None]:
    """Give the tree to *user* while the block runs, git's own files excepted. As an ordinary user nothing changes."""
    if os.geteuid() != 0:
        yield
        return
    hand_over(top, user.uid, user.gid)
    try:
        yield
    finally:
        hand_over(top, 0, 0)


def hand_over(top: Path, uid: int, gid: int) -> None:
    """Change the owner of all that is below *top*. Links are not followed, and a file with a second name keeps its owner."""

    def choose(found: os.stat_result) -> tuple[int, int] | None:
        return (uid, gid) if found.st_uid != uid and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1) else None

    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        change_owners(fd, choose, identities_of(top / ".git"))
    finally:
        os.close(fd)
