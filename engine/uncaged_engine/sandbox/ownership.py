"""Ownership of a script's writable directories: as root a script runs as a user of its own, who
owns them while it runs.

Only files of the directory's owner are changed; files of others, hard links and set-id files keep
their owner. Each is changed by descriptor, so a name that is swapped meanwhile changes nothing
else. A record on disk survives a crash: the next run that needs the directory, of any store of this
machine (`owner_pointers`), or the next worker of the store restores the owner. For an ordinary user
no owner changes.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from uncaged_bundles.storage.files import write_atomically

from .bounds import Identity
from .granted_paths import GrantedPaths, Refused
from .owner_pointers import point_to, pointed_records, unlink_pointer
from .scratch import ScratchUser, is_scratch, scratch_user

MOST_ENTRIES = 20_000
MOST_LEVELS = 500
"""Maximum depth of a walk, with a descriptor for each level."""


class TooDeep(Refused):
    """Directory nesting beyond the maximum depth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerOwner:
    """Record of a directory's owner before a run: its identity, its owner, and the groups that
    differ from its own, by inode. user: the script's.
    """

    place: str
    device: int
    inode: int
    uid: int
    gid: int
    user: int
    groups: Mapping[str, int]

    def write(self, path: Path) -> None:
        """Write the record to disk; flushed when this returns."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, path: Path) -> Self | None:
        try:
            return cls(**json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            # none, or one that a crash cut off before any owner changed
            return None

    def owner_of(self, found: os.stat_result) -> tuple[int, int] | None:
        """Return the owner to restore for an entry; None: it is not the script user's."""
        return (
            (self.uid, self.groups.get(str(found.st_ino), self.gid))
            if found.st_uid == self.user
            else None
        )


@contextmanager
def temporary_owner(
    places: Mapping[Path, Identity], user: ScratchUser, records: Path
) -> Iterator[None]:
    """Make *user* the owner of each of *places* and all below it inside this block. One run at a
    time owns a place.

    Args:
        places: by their names without links. records: the directory for records; below its parent
            no owner changes.
    Raises:
        Refused: a place holds too many files, or is another object.
    """
    if os.geteuid() != 0:
        yield
        return
    _restore_around(places)
    with ExitStack() as stack:
        stack.enter_context(_locked(places))
        for place in sorted(places):
            stack.enter_context(_owned(place, places[place], user, records))
        yield


@contextmanager
def _locked(places: Iterable[Path]) -> Iterator[None]:
    """Lock each place exclusively and its ancestors in shared mode, so that nested places are not
    owned by two runs.
    """
    modes = {above: fcntl.LOCK_SH for place in places for above in place.parents} | dict.fromkeys(
        places, fcntl.LOCK_EX
    )
    with ExitStack() as stack:
        for directory in sorted(modes):  # the same order in every run
            with suppress(OSError):
                fd = os.open(directory, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                stack.callback(os.close, fd)
                fcntl.flock(fd, modes[directory])
        yield


@contextmanager
def _owned(place: Path, identity: Identity, user: ScratchUser, records: Path) -> Iterator[None]:
    fd = _open(place, identity)
    try:
        path = record_path(records, place)
        restore_owner(path)
        _restore_inside(place)
        found = os.fstat(fd)
        if found.st_uid == user.uid or is_scratch(found.st_uid):
            yield
            return
        apart = identities_of(records.parent)
        former = FormerOwner(
            place=str(place),
            device=found.st_dev,
            inode=found.st_ino,
            uid=found.st_uid,
            gid=found.st_gid,
            user=user.uid,
            groups=_other_groups(fd, place, found, apart),
        )
        former.write(path)
        point_to(path)
        try:
            change_owners(
                fd,
                lambda entry: (user.uid, user.gid) if _may_change(entry, found.st_uid) else None,
                apart,
            )
            # crash here: the record names the former owner
            yield
        finally:
            change_owners(fd, former.owner_of, apart)
            _forget(path)
    finally:
        os.close(fd)


def _restore_around(places: Collection[Path]) -> None:
    """Restore the owners of directories around *places* that a killed process of any store has left
    changed. Before the places are locked: their locks hold those around them, too.
    """
    for record in pointed_records():
        former = FormerOwner.read(record)
        if former is not None and any(Path(former.place) in place.parents for place in places):
            with suppress(OSError, TooDeep), _unused(Path(former.place)):
                restore_owner(record)


def _restore_inside(place: Path) -> None:
    """Do the same for *place*, which is locked here, and the directories in it."""
    for record in pointed_records():
        former = FormerOwner.read(record)
        if former is not None and Path(former.place).is_relative_to(place):
            with suppress(OSError, TooDeep):
                restore_owner(record)


def _forget(record: Path) -> None:
    unlink_pointer(record.name)
    record.unlink()


def _open(place: Path, identity: Identity) -> int:
    replaced = (
        f"the granted path {str(place)!r} was replaced by something else just now; nothing was run"
    )
    try:
        fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise Refused(replaced) from exc
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise Refused(replaced) from exc
        raise
    found = os.fstat(fd)
    if (found.st_dev, found.st_ino) == identity:
        return fd
    os.close(fd)
    raise Refused(replaced)


def record_path(records: Path, place: Path) -> Path:
    return records / f"{hashlib.blake2b(os.fsencode(place), digest_size=16).hexdigest()}.json"


def restore_owners(records: Path) -> None:
    """Restore the owners of all places that ended processes of this store left changed; places in
    use stay as they are.
    """
    if os.geteuid() == 0 and records.is_dir():
        for path in records.glob("*.json"):
            former = FormerOwner.read(path)
            if former is not None:
                with suppress(OSError, TooDeep), _unused(Path(former.place)):
                    restore_owner(path)


@contextmanager
def _unused(place: Path) -> Iterator[None]:
    """Lock a place; BlockingIOError if a run of some worker has it, one around it, or one in it."""
    with ExitStack() as stack:
        for directory in sorted((place, *place.parents)):
            fd = os.open(directory, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            stack.callback(os.close, fd)
            fcntl.flock(
                fd, (fcntl.LOCK_EX if directory == place else fcntl.LOCK_SH) | fcntl.LOCK_NB
            )
        yield


def restore_owner(path: Path) -> None:
    """Restore the owner that a record names. The caller holds the place's lock; another object at
    the place is left alone.
    """
    former = FormerOwner.read(path)
    if former is None:
        return
    fd = os.open(former.place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) == (former.device, former.inode):
            change_owners(fd, former.owner_of, identities_of(path.parent.parent))
            _forget(path)
    finally:
        os.close(fd)


def _may_change(found: os.stat_result, owner: int) -> bool:
    """Return whether an entry's owner changes: it has this owner, one name, and no set-id bit."""
    plain = (
        stat.S_ISREG(found.st_mode)
        and found.st_nlink == 1
        and not found.st_mode & (stat.S_ISUID | stat.S_ISGID)
    )
    return found.st_uid == owner and (
        plain or stat.S_ISDIR(found.st_mode) or stat.S_ISLNK(found.st_mode)
    )


def _other_groups(
    fd: int, place: Path, top: os.stat_result, apart: Collection[Identity]
) -> dict[str, int]:
    """Count the entries, and return the groups to restore with the owner."""
    groups: dict[str, int] = {}
    for count, (_, found) in enumerate(walk(fd, apart), 1):
        if count > MOST_ENTRIES:
            raise Refused(
                f"{str(place)!r} holds more than {MOST_ENTRIES:,} files, too many to hand to the user that scripts run as when the "
                "engine is root; name a smaller directory in the policy's write, or start as an ordinary user"
            )
        if found.st_gid != top.st_gid and _may_change(found, top.st_uid):
            groups[str(found.st_ino)] = found.st_gid
    return groups


def change_owners(
    fd: int,
    choose: Callable[[os.stat_result], tuple[int, int] | None],
    apart: Collection[Identity] = (),
) -> None:
    """Set owner and group of each entry of an open tree to those that *choose* returns, if any."""
    for entry, found in walk(fd, apart):
        owner = choose(found)
        if owner is not None:
            # the object of the descriptor, whatever its name is by now
            os.chown(f"/proc/self/fd/{entry}", *owner)


def walk(top: int, apart: Collection[Identity] = ()) -> Iterator[tuple[int, os.stat_result]]:
    """Yield a descriptor (valid until the next step) and the status of a tree's top and of all
    below it.

    Every name is opened in its directory's descriptor and no link is followed; a name that vanishes
    is skipped.

    Args:
        apart: directories that are left out.
    Raises:
        TooDeep: it has more than MOST_LEVELS levels.
    """
    found = os.fstat(top)
    yield top, found
    if not stat.S_ISDIR(found.st_mode) or (found.st_dev, found.st_ino) in apart:
        return
    levels = [
        (
            os.open(f"/proc/self/fd/{top}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC),
            iter(os.listdir(top)),
        )
    ]
    try:
        while levels:
            directory, names = levels[-1]
            name = next(names, None)
            if name is None:
                os.close(levels.pop()[0])
                continue
            try:
                entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            except FileNotFoundError:
                continue
            try:
                found = os.fstat(entry)
                if (found.st_dev, found.st_ino) in apart:
                    continue
                yield entry, found
                if stat.S_ISDIR(found.st_mode):
                    if len(levels) == MOST_LEVELS:
                        place = str(Path(f"/proc/self/fd/{top}").readlink())
                        raise TooDeep(
                            f"directories are nested more than {MOST_LEVELS:,} deep in {place!r}, too deep to change the owner; remove some"
                        )
                    below = os.open(
                        f"/proc/self/fd/{entry}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
                    )
                    levels.append((below, iter(os.listdir(below))))  # noqa: PTH208 - a descriptor
            finally:
                os.close(entry)
    finally:
        for directory, _ in levels:
            os.close(directory)


def identities_of(*paths: Path) -> set[Identity]:
    """Return device and inode of each path that exists; a link is not followed."""
    found = set()
    for path in paths:
        with suppress(FileNotFoundError):
            status = path.lstat()
            found.add((status.st_dev, status.st_ino))
    return found


def user_for(places: GrantedPaths, home: Path) -> ScratchUser:
    """Return the owner of a writable place of the script, if it is one of the users for scripts;
    else a user for scripts.
    """
    for place in places.write if os.geteuid() == 0 else ():
        if place.exists() and is_scratch(place.stat().st_uid):
            return scratch_user(place)
    return scratch_user(home)


def may_enter(directory: Path, user: ScratchUser) -> bool:
    """Return whether the user can work in a directory."""
    found = directory.stat()
    bits = stat.S_IMODE(found.st_mode) >> (
        6 if found.st_uid == user.uid else 3 if found.st_gid == user.gid else 0
    )
    return bits & 0o5 == 0o5
