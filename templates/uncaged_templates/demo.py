"""Demo repository: a small git repository with one wrong line in each of three files, and failing
tests. Its commit is identical on every machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks, UncagedError, UsageError

from .demo_files import FILES, ISSUE

__all__ = ["BUGS", "ISSUE", "Bug", "write_demo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One wrong line. right, wrong: the correct line and the written one, without indent."""

    name: str
    path: str
    right: str
    wrong: str


BUGS = (
    Bug(
        name="grace",
        path="lending/fines.py",
        right="if late <= GRACE_DAYS:",
        wrong="if late < GRACE_DAYS:",
    ),
    Bug(
        name="page",
        path="lending/catalogue.py",
        right="start = (number - 1) * size",
        wrong="start = number * size",
    ),
    Bug(
        name="renew",
        path="lending/loans.py",
        right="return loan.renewals < MAX_RENEWALS and not loan.reserved",
        wrong="return loan.renewals < MAX_RENEWALS or not loan.reserved",
    ),
)

_AUTHOR = ("Demo", "demo@example.com")
_DATE = "2024-05-06T07:08:09+00:00"


def write_demo(directory: Path, bugs: Iterable[Bug] = BUGS) -> None:
    """Make *directory* a git repository with one commit on ``main`` that has *bugs*.

    The repository configures its own author, so that commits work where git was never set up.

    Raises:
        UsageError: *directory* is not empty, or cannot be written.
        EnvironmentLacks: git is not installed.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(
            f"{str(directory)!r} exists and is not empty; name a new directory for the demo"
        )
    if shutil.which("git") is None:
        raise EnvironmentLacks(
            "git is not installed; the demo is a git repository (on Debian: apt-get install git)"
        )
    files = dict(FILES)
    for bug in bugs:
        files[bug.path] = files[bug.path].replace(bug.right, bug.wrong)
    try:
        for path, text in files.items():
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode())
    except OSError as exc:
        raise UsageError(
            f"cannot write {str(directory)!r}: {exc.strerror}; name another directory"
        ) from exc
    _git(directory, "init", "--quiet", "--template=", "--initial-branch=main")
    _git(directory, "config", "user.name", _AUTHOR[0])
    _git(directory, "config", "user.email", _AUTHOR[1])
    _git(directory, "add", "--all")
    _git(directory, "commit", "--quiet", "--message", "Loans, fines and a catalogue")


def _git(directory: Path, *words: str) -> None:
    """Run git without the person's settings: hooks, signing and line endings must not change the
    commit.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": _DATE,
        "GIT_COMMITTER_DATE": _DATE,
    }
    done = subprocess.run(
        ["git", *words], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UncagedError(f"git {words[0]} failed in {str(directory)!r}: {done.stderr.strip()}")
