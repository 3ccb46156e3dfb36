"""States of the files of a directory, by which a change of one is noticed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def states_of_files(directory: Path) -> str:
    """Return a text that is another one after each change of a file in a directory, or of one that
    a link there leads to; empty without the directory. Hidden names do not count: those of
    temporary files, and of editors.
    """
    found = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    found.append((entry.name, *_state(entry)))
    except FileNotFoundError:
        return ""
    return repr(sorted(found))


def _state(entry: os.DirEntry[str]) -> tuple[int, ...]:
    """Return the state of a file, or that of a link that leads nowhere; empty if it is gone."""
    for follows in (True, False):
        with suppress(OSError):
            state = entry.stat(follow_symlinks=follows)
            return state.st_ino, state.st_size, state.st_mtime_ns
    return ()
