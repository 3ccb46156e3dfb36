"""Working copies for scripts: links stay links, devices are skipped, and as root the copy belongs
to a user that owns nothing else.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.errors import RefusedError

SCRIPT_UIDS = range(64000, 64500)
BROWSER_UIDS = range(64500, 65000)
"""Users for browsers: the limit of a script's processes counts all of its user's, and a browser has
hundreds of threads.
"""
MAX_BYTES = 2 << 30
ANY_OWNER = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}
"""Variables for git, which as root runs as a user who does not own the repository; it sees the
granted repositories only.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchUser:
    """User that runs a script."""

    uid: int
    gid: int


def scratch_user(place: Path, uids: range = SCRIPT_UIDS) -> ScratchUser:
    """Return the user for scripts that work in *place*: the own user, or as root one without an
    account.

    A place that such a user owns already keeps its owner; else the user is derived from the path,
    so that scripts of different places do not share a process count.
    """
    if os.geteuid() != 0:
        return ScratchUser(uid=os.geteuid(), gid=os.getegid())
    for above in (place, *place.parents):
        try:
            owner = above.stat()
        except OSError:
            continue
        if owner.st_uid in uids:
            return ScratchUser(uid=owner.st_uid, gid=owner.st_uid)
    first = zlib.crc32(os.fsencode(place)) % len(uids)
    uid = next(uid for uid in (*uids[first:], *uids[:first]) if not _has_account(uid))
    return ScratchUser(uid=uid, gid=uid)


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def is_scratch(uid: int) -> bool:
    """Return whether this is a user for scripts."""
    return uid in SCRIPT_UIDS


def scratch_copy(
    source: Path, destination: Path, *, max_bytes: int = MAX_BYTES, skip: Collection[str] = ()
) -> ScratchUser:
    """Copy a tree for a script to work on.

    Args:
        destination: made here; must not exist.
        skip: names that are left out at every level.
    Returns:
        The owner of the copy.
    Raises:
        RefusedError: the tree is larger than *max_bytes*; the partial copy is removed.
    """
    user = scratch_user(destination)
    try:
        _copy_directory(
            source, destination, user if os.geteuid() == 0 else None, frozenset(skip), max_bytes
        )
    except RefusedError:
        shutil.rmtree(destination)
        raise
    return user


def _copy_directory(
    source: Path, destination: Path, owner: ScratchUser | None, skip: frozenset[str], allowance: int
) -> int:
    """Copy the entries of one directory; return the rest of the allowance."""
    destination.mkdir(mode=0o700)
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.name in skip:
                continue
            place = destination / entry.name
            if entry.is_symlink():
                place.symlink_to(Path(entry.path).readlink())
                _own(place, owner)
            elif entry.is_dir(follow_symlinks=False):
                allowance = _copy_directory(Path(entry.path), place, owner, skip, allowance)
            elif entry.is_file(follow_symlinks=False):
                allowance = _copy_file(entry.path, place, owner, allowance)
    status = source.stat()
    destination.chmod(stat.S_IMODE(status.st_mode) & 0o777 | 0o700)
    _own(destination, owner)
    return allowance


def _copy_file(source: str, place: Path, owner: ScratchUser | None, allowance: int) -> int:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(reading, "rb"), place.open("xb") as copy:
        status = os.fstat(reading)
        allowance -= status.st_size
        if allowance < 0:
            raise RefusedError(
                f"{source!r}: the tree is too large to be copied for a script; leave out what it does not need"
            )
        sent = 0
        while sent < status.st_size:
            count = os.sendfile(copy.fileno(), reading, sent, status.st_size - sent)
            if count == 0:
                break  # the file became shorter meanwhile
            sent += count
        os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
        os.fchmod(copy.fileno(), stat.S_IMODE(status.st_mode) & 0o777 | 0o600)
    _own(place, owner)
    return allowance


def _own(place: Path, owner: ScratchUser | None) -> None:
    if owner is not None:
        os.chown(place, owner.uid, owner.gid, follow_symlinks=False)
