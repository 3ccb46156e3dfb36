"""Small git repositories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

IDENTITY = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")


def git(directory: Path, *arguments: str) -> str:
    """Run git as the person would and return what it prints."""
    done = subprocess.run(
        ["git", *IDENTITY, *arguments],
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


def make_repository(directory: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
    """Make a repository with one commit that holds *files*."""
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet", "--initial-branch=main")
    write(
        directory,
        files
        if files is not None
        else {"add.py": "def add(a, b):\n    return a - b\n", "lib/deep.txt": "deep\n"},
    )
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--allow-empty", "--message=one")
    return directory


def write(directory: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def contents(directory: Path) -> dict[str, bytes]:
    """Every file under *directory*, links by what they name, git's own left out."""
    found: dict[str, bytes] = {}
    for root, directories, names in os.walk(directory):
        directories[:] = [name for name in directories if name != ".git"]
        for name in [*names, *(name for name in directories if (Path(root) / name).is_symlink())]:
            path = Path(root) / name
            if path.name != ".git":
                found[str(path.relative_to(directory))] = (
                    bytes(path.readlink()) if path.is_symlink() else path.read_bytes()
                )
    return found
