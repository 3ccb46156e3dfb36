"""Files that the examples of the shipped samples name."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path


def fill(place: Path) -> None:
    """Add what the examples name: a file, a folder, an archive, and a repository."""
    (place / "small.txt").write_text("one\ntwo\nThree\n")
    (place / "example.txt").write_text("an example\n")
    (place / "archive").mkdir()
    with zipfile.ZipFile(place / "example.zip", "w") as archive:
        archive.writestr("inside.txt", "packed\n")
    commit(place)


def commit(place: Path) -> None:
    """Make a repository with one commit."""
    git = ["git", "-C", str(place), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for words in (
        ["init", "-q", "-b", "trunk"],
        ["add", "small.txt"],
        ["commit", "-q", "-m", "first words"],
    ):
        subprocess.run(
            [*git, *words], check=True, env={"PATH": "/usr/bin:/bin", "HOME": str(place)}
        )
