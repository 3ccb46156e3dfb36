"""Lookup of a policy's commands on the caller's PATH, compiled programs first."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.sandbox import find_interpreter

MAGIC = b"\x7fELF"
INTERPRETERS = {"bash": "bash", "python": "python3", "powershell": "pwsh"}
GIT_HELPERS = ("/usr/lib/git-core", "/usr/libexec/git-core")
SHELLS = ("sh", "bash", "dash", "busybox", "ksh", "zsh")


def find_interpreter_of(language: str, path: str) -> Path:
    """Return the interpreter of a language; for Python without one on *path*, that of this
    process.
    """
    try:
        return find_binary(INTERPRETERS[language], path)
    except EnvironmentLacks:
        if language != "python":
            raise
        return find_interpreter().executable


def find_binary(name: str, path: str) -> Path:
    """Return the first compiled program of that name on *path*, else the first executable file.

    Version managers put small scripts first, which could start nothing inside a sandbox.

    Raises:
        EnvironmentLacks: there is none.
    """
    found = list(_candidates(name, path))
    if not found:
        raise EnvironmentLacks(
            f"the script needs {name!r}, which is not on the PATH of this machine",
            remedy="install it",
        )
    return next((program for program in found if _is_compiled(program)), found[0])


def twins_of(programs: Iterable[Path]) -> Iterator[Path]:
    """Yield git's identical copy of itself in its library directory, which it starts itself (``git
    commit`` starts ``git maintenance``).
    """
    for program in programs:
        for directory in GIT_HELPERS if program.name == "git" else ():
            twin = Path(directory, program.name)
            if twin.is_file() and filecmp.cmp(program, twin, shallow=False):
                yield twin


def find_shell(programs: Iterable[Path]) -> Path | None:
    """Return the first shell among a script's programs, its ``/bin/sh``."""
    return next((program for program in programs if program.name in SHELLS), None)


def _candidates(name: str, path: str) -> Iterator[Path]:
    paths = (
        [Path(name)]
        if name.startswith("/")
        else [Path(directory) / name for directory in path.split(":") if directory.startswith("/")]
    )
    for program in paths:
        if os.path.isfile(program) and os.access(program, os.X_OK):  # noqa: PTH113 - no error in an unreadable directory
            yield program


def _is_compiled(program: Path) -> bool:
    try:
        with program.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
