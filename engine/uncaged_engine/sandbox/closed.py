"""Granted directories that are closed to the user of scripts, or that contain hidden directories.

A granted directory can be entered and listed, whatever its mode; its entries are read as their own
modes allow. Where that takes more than one mount or rule, the directory is shown by its entries.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from uncaged_bundles.errors import RefusedError, SandboxUnavailable

from .bounds import Identity, ScriptView
from .scratch import ScratchUser

MOST_ENTRIES = 2_000
"""Entries of a closed directory; bubblewrap takes 9,000 arguments."""
MOST_WALKED = 200_000
KERNEL_DIRECTORIES = ("/proc", "/sys", "/dev")
"""Directories where more than modes decides about reading."""


def allows(status: os.stat_result, user: ScratchUser, bits: int) -> bool:
    """Return whether a file's mode gives *user* all of *bits* (4 read, 2 write, 1 enter)."""
    shift = 6 if status.st_uid == user.uid else 3 if status.st_gid == user.gid else 0
    return stat.S_IMODE(status.st_mode) >> shift & bits == bits


def shown_by_entries(
    view: ScriptView,
    granted: Collection[Path],
    user: ScratchUser,
    identities: Mapping[Path, Identity],
) -> tuple[ScriptView, dict[Path, Identity]]:
    """Replace each granted directory that *user* may not list by its entries, for mounts.

    Raises:
        RefusedError: a directory is not the object that was granted. SandboxUnavailable: one holds
            too much.
    """
    read, links, listed, known = (
        list(view.read),
        list(view.entry_links),
        list(view.listed),
        dict(identities),
    )
    for place in view.read:
        if place not in granted or not place.is_dir() or allows(place.stat(), user, 5):
            continue
        read.remove(place)
        listed.append(place)
        expected = known.pop(place, None)
        for path, status in _entries(place, expected):
            if path in view.hidden or path in view.write:
                continue
            if stat.S_ISLNK(status.st_mode):
                links.append((path, str(path.readlink())))
            elif stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode):
                read.append(path)
                known[path] = (status.st_dev, status.st_ino)
    return replace(view, read=tuple(read), entry_links=tuple(links), listed=tuple(listed)), known


def _entries(directory: Path, expected: Identity | None) -> Iterator[tuple[Path, os.stat_result]]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if expected is not None and expected != (found.st_dev, found.st_ino):
            raise RefusedError(
                f"the granted path {str(directory)!r} was replaced by something else just now; nothing was run"
            )
        with os.scandir(fd) as entries:
            for count, entry in enumerate(entries, 1):
                if count > MOST_ENTRIES:
                    raise SandboxUnavailable(
                        f"as root a script runs as a user of its own, to whom {str(directory)!r} is closed and too large to be opened "
                        f"(more than {MOST_ENTRIES:,} entries); open it to others (chmod o+rx), or name a directory in it"
                    )
                try:
                    yield directory / entry.name, entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
    finally:
        os.close(fd)


def shown_by_rights(
    view: ScriptView,
    granted: Collection[Path],
    user: ScratchUser | None,
    identities: Mapping[Path, Identity],
) -> tuple[ScriptView, dict[Path, Identity]]:
    """Replace each granted directory by the trees that *user* may read in it, for Landlock rules;
    hidden directories are left out.

    Args:
        user: a user who passes through every directory; None: the kernel enforces the modes.
    Raises:
        SandboxUnavailable: a directory for writing holds what must stay closed, or a directory is
            too large to be looked through.
    """
    read, listed, known = list(view.read), list(view.listed), dict(identities)
    for place in view.write:
        if _readable(place, user, view.hidden) != [place]:
            raise SandboxUnavailable(
                f"with Landlock a script cannot be given {str(place)!r} to write to: the engine's store or files closed to the script's "
                "user lie in it; name a smaller directory in the policy's write, or install bubblewrap"
            )
    for place in view.read:
        if place not in granted and place.parts[:2] != ("/", "etc"):
            continue  # the system's own, open to every user
        parts = _readable(place, user, view.hidden)
        if parts == [place]:
            continue
        read.remove(place)
        if place.is_dir():
            listed.append(place)
        for part in parts:
            status = part.lstat()
            read.append(part)
            known[part] = (status.st_dev, status.st_ino)
    return replace(view, read=tuple(read), listed=tuple(listed)), known


def _readable(place: Path, user: ScratchUser | None, hidden: Collection[Path]) -> list[Path]:
    """Return the largest readable trees in *place*: itself, or some below it."""
    if any(str(place) == name or str(place).startswith(f"{name}/") for name in KERNEL_DIRECTORIES):
        return [place]
    above_hidden = {parent for path in hidden for parent in path.parents}
    if user is None and place not in above_hidden:
        return [place]
    if not place.is_dir():
        return [place] if user is None or allows(place.stat(), user, 4) else []
    return _TreeWalk(place, user, hidden, above_hidden).parts(place, entered=True)


class _TreeWalk:
    """Walk through a tree. user None: only hidden directories matter."""

    def __init__(
        self,
        top: Path,
        user: ScratchUser | None,
        hidden: Collection[Path],
        above_hidden: Collection[Path],
    ) -> None:
        self._top, self._user, self._hidden, self._above_hidden = top, user, hidden, above_hidden
        self._count = 0

    def parts(self, directory: Path, *, entered: bool = False) -> list[Path]:
        """Return [directory] if all of it is readable. entered: its own mode does not matter."""
        if directory in self._hidden:
            return []
        if self._user is None and directory not in self._above_hidden:
            return [directory]
        try:
            if (
                not entered
                and self._user is not None
                and not allows(directory.lstat(), self._user, 5)
            ):
                return []
            entries = list(os.scandir(directory))
        except FileNotFoundError:
            return []
        whole, found = True, []
        for entry in entries:
            self._count += 1
            if self._count > MOST_WALKED:
                raise SandboxUnavailable(
                    f"{str(self._top)!r} is too large to be looked through for what is closed to the script's user "
                    f"(more than {MOST_WALKED:,} files); name a smaller directory, install bubblewrap, or start as an ordinary user"
                )
            path = directory / entry.name
            if entry.is_symlink():
                continue  # the target of a link has rights of its own
            parts = self.parts(path) if entry.is_dir(follow_symlinks=False) else self._file(path)
            whole &= parts == [path]
            found += parts
        return [directory] if whole else found

    def _file(self, path: Path) -> list[Path]:
        try:
            return [path] if self._user is None or allows(path.lstat(), self._user, 4) else []
        except FileNotFoundError:
            return []
