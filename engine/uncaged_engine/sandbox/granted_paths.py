"""Granted paths as objects: each is opened by descriptor, starting at the root directory, and
identified by device and inode.

Rule 1: a symbolic link in a place that scripts may write never leads out of that place. Rule 2:
within a thread, a granted path is the object that it was at its first use. The places that scripts
of a store may write are kept in the store, so both hold between flows.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks

from .bounds import MAX_LINKS, Identity
from .lockdown import syscall
from .syscalls import number_of

RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_BENEATH = 0x08
_NOT_OFFERED = (errno.ENOSYS, errno.EPERM)
"""An old kernel, or a container whose filter does not know the call."""


class Refused(Exception):
    """Refusal by the policy; the message has the path and the declaration that would allow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedPath:
    """Path that the policy grants. entry: key and text of the policy. path: absolute, as written.
    real: without links. identity: None if missing.
    """

    entry: str
    path: Path
    real: Path
    identity: Identity | None

    def record(self) -> dict[str, object]:
        """Return the journal's record of the first use of an existing path."""
        if self.identity is None:
            raise ValueError(f"{self.path} does not exist")
        return {"path": str(self.path), "device": self.identity[0], "inode": self.identity[1]}


def open_granted_paths(
    entries: Iterable[tuple[str, Path]], written: Mapping[Identity, Path], *, make: bool = False
) -> list[GrantedPath]:
    """Open granted paths and return their identities.

    Args:
        entries: policy entries with their absolute paths. written: directories that scripts may
            write, by identity.
        make: make a missing path, as a directory, if the one above it exists.
    Raises:
        Refused: a link in a written directory leads out of it, a path cannot be made, or it is the
            root directory.
    """
    found = []
    for entry, text in entries:
        path = Path(os.path.normpath(text))
        with opened_path(path, written, make=make) as fd:
            status = None if fd is None else os.fstat(fd)
            real = path if fd is None else Path(f"/proc/self/fd/{fd}").readlink()
        if real == Path("/"):
            raise Refused(
                f"the policy's {entry} grants {str(path)!r}, the whole file system, which no sandbox gives to a script; "
                "name directories in it"
            )
        identity = None if status is None else (status.st_dev, status.st_ino)
        found.append(GrantedPath(entry=entry, path=path, real=real, identity=identity))
    return found


@contextmanager
def opened_path(
    path: Path, written: Mapping[Identity, Path], *, make: bool = False
) -> Iterator[int | None]:
    """Yield a descriptor (O_PATH) of an absolute path; None if it does not exist."""
    fd = _walk(path, written, make=make)
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


def _walk(path: Path, written: Mapping[Identity, Path], *, make: bool) -> int | None:
    """Open one name after the other; links are followed until a written directory is entered."""
    names = [name for name in reversed(os.path.normpath(path).split("/")) if name]
    links = 0
    here = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        while names:
            status = os.fstat(here)
            if (status.st_dev, status.st_ino) in written:
                return _within(here, names, path, written[status.st_dev, status.st_ino], make=make)
            name = names.pop()
            if make and not names:
                _make(here, name)
            there = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            if stat.S_ISLNK(os.fstat(there).st_mode):
                target = os.readlink("", dir_fd=there)
                os.close(there)
                links += 1
                if links > MAX_LINKS:
                    raise Refused(f"the path {str(path)!r} leads over too many links")
                names += [part for part in reversed(target.split("/")) if part]
                there = (
                    os.open("/", os.O_PATH | os.O_CLOEXEC)
                    if target.startswith("/")
                    else os.dup(here)
                )
            os.close(here)
            here = there
        return os.dup(here)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        if make:
            above = str(path.parent)
            raise Refused(
                f"the policy lets the script write to {str(path)!r}, but neither that nor {above!r} exists; make it"
            ) from None
        return None
    finally:
        os.close(here)


def _within(directory: int, names: list[str], path: Path, place: Path, *, make: bool) -> int:
    """Open the rest of a path below a directory that scripts may write."""
    rest = list(reversed(names))
    try:
        if make:
            above = open_beneath(directory, "/".join(rest[:-1]) or ".")
            try:
                _make(above, rest[-1])
            finally:
                os.close(above)
        return open_beneath(directory, "/".join(rest))
    except OSError as exc:
        if exc.errno not in (errno.EXDEV, errno.ELOOP):
            raise
        raise Refused(
            f"the granted path {str(path)!r} leads over a link out of {str(place)!r}, which scripts may write; "
            "name the directory itself in the policy, or put it in the link's place"
        ) from None


def open_beneath(directory: int, rest: str) -> int:
    """Open a path below *directory* with O_PATH; no link leads out of it.

    Without ``openat2`` no link is followed at all, so nothing is opened that ``openat2`` would
    refuse.

    Raises:
        OSError: EXDEV or ELOOP: a link leads out, or is not followed.
    """
    how = b"".join(
        word.to_bytes(8, "little")
        for word in (os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    )
    number = number_of("openat2", os.uname().machine)
    if number is not None:
        try:
            return syscall(number, directory, os.fsencode(rest), how, len(how))
        except OSError as exc:
            if exc.errno not in _NOT_OFFERED:
                raise
    return open_without_links(directory, rest)


def open_without_links(directory: int, rest: str) -> int:
    """Open a path below *directory* one name at a time, without following links."""
    here = os.dup(directory)
    for name in rest.split("/"):
        try:
            if name == "..":
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            there = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
        finally:
            os.close(here)
        here = there
        if stat.S_ISLNK(os.fstat(here).st_mode):
            os.close(here)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return here


def _make(directory: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=directory)


def check_unchanged(paths: Iterable[GrantedPath], recorded: Mapping[str, object]) -> None:
    """Refuse a granted path that is another object than at the thread's first use.

    Raises:
        Refused: device or inode differ. EnvironmentLacks: the entry resolves to another path
            (another directory or variable of the caller).
    """
    for path in paths:
        first = recorded.get(path.entry)
        if path.identity is None or not isinstance(first, Mapping):
            continue
        if first.get("path") != str(path.path):
            raise EnvironmentLacks(
                f"the policy's {path.entry} was {first.get('path')!r} when this thread first used it and would be {str(path.path)!r} now; "
                "resume from the same directory and with the same variables, or fork the thread"
            )
        device, inode = first.get("device"), first.get("inode")
        if (device, inode) != path.identity:
            raise Refused(
                f"the granted path {str(path.path)!r} is not what it was when this thread first used it: then device {device}, "
                f"inode {inode}; now device {path.identity[0]}, inode {path.identity[1]} ({str(path.real)!r}); "
                "put the former back, or fork the thread to use what is there now"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedPaths:
    """Paths of one run, as they are mounted: as written, and without links. paths: the same, one
    for each entry of the policy.
    """

    read: tuple[Path, ...]
    write: tuple[Path, ...]
    paths: tuple[GrantedPath, ...] = ()

    @property
    def identities(self) -> dict[Path, Identity]:
        """Return device and inode of each path that exists, under both names."""
        return {
            path: granted.identity
            for granted in self.paths
            if granted.identity is not None
            for path in (granted.path, granted.real)
        }

    @property
    def writable(self) -> dict[Path, Identity]:
        """Return the writable paths of the script, each by its name without links."""
        return {
            granted.real: granted.identity
            for granted in self.paths
            if granted.identity is not None and granted.real in self.write
        }

    def covers(self, path: Path) -> bool:
        """Return whether a path is inside one of them, links resolved, by path components:
        ``/data`` does not contain ``/data2``.
        """
        return _lies_in(path, (*self.read, *self.write))

    def opens(self, path: Path) -> bool:
        """Return whether a path is inside a writable one."""
        return _lies_in(path, self.write)


def _lies_in(path: Path, allowed: Iterable[Path]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(one)) for one in allowed)


class WrittenDirectories:
    """Directories that scripts of a store may write, one JSON string a line; entries are never
    removed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def known(self) -> dict[Identity, Path]:
        """Return the existing directories, by identity."""
        found: dict[Identity, Path] = {}
        for place in self._listed():
            with suppress(OSError):
                status = place.stat()
                found[status.st_dev, status.st_ino] = place
        return found

    def note(self, places: Iterable[Path]) -> None:
        """Add directories to the file; flushed when this returns."""
        listed = set(self._listed())
        fresh = [place for place in places if place not in listed]
        if fresh:
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, "".join(json.dumps(str(place)) + "\n" for place in fresh).encode())
                os.fdatasync(fd)
            finally:
                os.close(fd)

    def _listed(self) -> list[Path]:
        try:
            lines = self._path.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        found = []
        for line in lines:
            with suppress(ValueError):  # a line that a crash cut off: its script never started
                found.append(Path(json.loads(line)))
        return found
