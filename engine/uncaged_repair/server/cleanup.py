"""Cleanup after tests: the scratch copy is restored, and the home and the temporary directory are
emptied before the next candidate.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Entry = tuple[int, int, int, int]

SHARE = 0.15
"""Largest share of the time for looking for changes; a large repository is looked at less often."""


class ScratchTree:
    """Copy that tests may write to. pristine: the same files, never written. empty: directories to
    be emptied.
    """

    def __init__(self, root: Path, pristine: Path, empty: list[Path]) -> None:
        self._root, self._pristine, self._empty = root, pristine, empty
        self._known = dict(_walk(root))
        self._cost_s = 0.0
        self._since_s = 0.0

    def restore(self, worked_s: float, force: bool = False) -> None:
        """Restore everything after a run of *worked_s* seconds, unless looking for changes would
        cost too large a share of the time.
        """
        for directory in self._empty:
            _clear(directory)
        self._since_s += worked_s
        if not force and self._cost_s > self._since_s * SHARE:
            return
        started = time.monotonic()
        self._put_back()
        self._cost_s, self._since_s = time.monotonic() - started, 0.0

    def _put_back(self) -> None:
        now = dict(_walk(self._root))
        if now == self._known:
            return
        for path in sorted(set(now) - set(self._known), reverse=True):
            _remove(self._root / path)
        for path in sorted(self._known):
            mode = self._known[path][0]
            target = self._root / path
            if now.get(path) == self._known[path]:
                continue
            if not stat.S_ISDIR(mode):
                _remove(target)
                shutil.copy2(self._pristine / path, target, follow_symlinks=False)
                continue
            if not target.is_dir() or target.is_symlink():
                _remove(target)
                target.mkdir()
            target.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
        self._known = dict(_walk(self._root))


def _walk(root: Path) -> Iterator[tuple[str, Entry]]:
    """Yield kind, size, time and inode of each file below *root*; of a directory only the kind."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(root / inside) as entries:
            for entry in entries:
                path = f"{inside}/{entry.name}" if inside else entry.name
                seen = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(seen.st_mode):
                    yield path, (seen.st_mode, 0, 0, 0)
                    waiting.append(path)
                else:
                    yield path, (seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ino)


def _clear(directory: Path) -> None:
    with contextlib.suppress(OSError):
        for inner in list(directory.iterdir()):
            _remove(inner)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
