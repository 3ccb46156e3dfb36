"""Files of submodules in a worktree: copied from the checkout, without their git directories.

No git command for submodules is run, nothing is fetched, and `.gitmodules` is not read. Snapshots
hold the copied files; a commit of the thread's branch names the submodule's commit as before.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from .links import DEPENDENCY_NAMES

LEFT_OUT = DEPENDENCY_NAMES | {"__pycache__"}


def copy_submodules(names: Iterable[str], repository: Path, tree: Path) -> None:
    """Copy the files of each submodule from *repository* to the same path in *tree*. One that is
    not checked out stays empty.
    """
    for name in names:
        if _is_reached_plainly(repository, name) and _is_reached_plainly(tree, name):
            _copy(repository / name, tree / name)


def _is_reached_plainly(top: Path, name: str) -> bool:
    """Return whether *name* lies in *top*, without a link on the way."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or _is_git(path.parts):
        return False
    places = [top.joinpath(*path.parts[: count + 1]) for count in range(len(path.parts))]
    return not any(place.is_symlink() for place in places)


def _is_git(parts: Iterable[str]) -> bool:
    return any(part.casefold() == ".git" for part in parts)


def _copy(source: Path, target: Path) -> None:
    """Copy a directory's files and links; links are not followed, and git's own files are left
    out.
    """
    if not source.is_dir():
        return
    target.mkdir(parents=True, exist_ok=True)
    for entry in os.scandir(source):
        path = target / entry.name
        if _is_git((entry.name,)) or entry.name in LEFT_OUT:
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            _copy(Path(entry.path), path)
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            path.unlink(missing_ok=True)
            shutil.copy2(entry.path, path, follow_symlinks=False)
