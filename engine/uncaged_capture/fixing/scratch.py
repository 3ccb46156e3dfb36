"""Scratch git repository of a fix: the files that an agent works on, in one commit."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from uncaged_engine.services.git import IDENTITY, Git

__all__ = ["MAX_FILE_BYTES", "changed_files", "make_repository", "read_file"]

MAX_FILE_BYTES = 1 << 20
FROM_GIT = frozenset({".git"})


def make_repository(
    directory: Path, files: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Write the files into a new repository and commit them."""
    directory.mkdir(parents=True, mode=0o700)
    for name, text in files.items():
        (directory / name).write_text(text, "utf-8")
    git = Git(directory=directory, environment=environment, variables=IDENTITY)
    git.run("init", "--quiet", "--initial-branch", "main")
    git.run("add", "--", *files)
    git.run("commit", "--quiet", "--message", "the failed flow")


def read_file(path: Path) -> str:
    """Return the text of a regular file that an agent may have replaced.

    Raises:
        ValueError: it is no such file, or too large, or not UTF-8. OSError: it cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError(f"{path.name} is no file")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{path.name} has more than {MAX_FILE_BYTES:,} bytes")
    return data.decode("utf-8")


def changed_files(directory: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of files that were changed, added or removed in a directory."""
    for name, text in files.items():
        try:
            same = read_file(directory / name) == text
        except (OSError, ValueError):
            same = False
        if not same:
            yield name
    yield from sorted({one.name for one in os.scandir(directory)} - set(files) - FROM_GIT)
