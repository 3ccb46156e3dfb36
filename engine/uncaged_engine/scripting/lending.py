"""As root a script runs as a user of its own, and what it may write is that user's only while it runs.

What belongs to the owner of a directory is lent and given back; what belongs to others, and files with a second name, stay as they are.
As an ordinary user nothing changes hands.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..sandbox.scratch import ScratchUser, is_scratch, scratch_user
from .places import Places
from .wish import Refused

MOST_ENTRIES = 20_000


@contextmanager
def lent(places: Sequence[Path], user: ScratchUser) -> Iterator[None]:
    """Inside, *user* may write to what is below each of *places*. A place is lent to one run at a time.

    Raises:
        Refused: a place holds too much to be handed over.
    """
    if os.geteuid() != 0:
        yield
        return
    with ExitStack() as stack:
        for place in sorted({Path(os.path.realpath(place)) for place in places}):
            stack.enter_context(_lent(place, user))
        yield


@contextmanager
def _lent(place: Path, user: ScratchUser) -> Iterator[None]:
    fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # before a look at the owner: while it is lent, that is the other run's user
        found = os.fstat(fd)
        if found.st_uid == user.uid or is_scratch(found.st_uid):
            fcntl.flock(fd, fcntl.LOCK_UN)
            yield
            return
        hand_over(place, found.st_uid, user.uid, user.gid)
        # crash here: the place stays the script user's, who owns nothing else; the next run finds it so and works
        try:
            yield
        finally:
            hand_over(place, user.uid, found.st_uid, found.st_gid)
    finally:
        os.close(fd)


def user_for(places: Places, home: Path) -> ScratchUser:
    """Whoever owns a place that the script may write, if that is one of the users for scripts; else one of these."""
    for place in places.write if os.geteuid() == 0 else ():
        if place.exists() and is_scratch(place.stat().st_uid):
            return scratch_user(place)
    return scratch_user(home)


def make_missing(places: Sequence[Path], user: ScratchUser) -> None:
    """Make a missing place to write to, as a directory, if what is above it exists."""
    for place in places:
        if place.exists():
            continue
        if not place.parent.is_dir():
            raise Refused(f"the policy lets the script write to {str(place)!r}, but neither that nor {str(place.parent)!r} exists; make it")
        place.mkdir(mode=0o755)
        if os.geteuid() == 0:
            os.chown(place, user.uid, user.gid)


def may_enter(directory: Path, user: ScratchUser) -> bool:
    """Whether the user can work in a directory."""
    found = directory.stat()
    bits = stat.S_IMODE(found.st_mode) >> (6 if found.st_uid == user.uid else 3 if found.st_gid == user.gid else 0)
    return bits & 0o5 == 0o5


def hand_over(place: Path, former: int, uid: int, gid: int) -> None:
    """Give what *former* owns in a tree to another; links are not followed."""
    count = 0
    for directory, names, files in os.walk(place) if place.is_dir() else [(str(place), [], [])]:
        for path in (directory, *(os.path.join(directory, name) for name in (*names, *files))):  # noqa: PTH118 - a hot loop
            count += 1
            if count > MOST_ENTRIES:
                raise Refused(
                    f"{str(place)!r} holds more than {MOST_ENTRIES:,} files, too many to be lent to the user that scripts run as when the "
                    "engine is root; name a smaller directory in the policy's write, or start as an ordinary user"
                )
            found = os.lstat(path)
            plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
            if found.st_uid == former and (plain or stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode)):
                os.chown(path, uid, gid, follow_symlinks=False)
