"""This machine, as far as kinds of failures look at it: programs on PATH and their help, and paths
that a flow names.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_engine.services.sandbox import (
    ScriptBounds,
    choose,
    find_interpreter,
    python_prefixes,
    run_script,
)

from .likeness import likeness

__all__ = ["Machine"]

HELP_S = 10.0
SEARCH_S = 120.0
OUTPUT_BYTES = 16 << 20
LIKE = 0.6
LIKE_ABOVE = 0.4
"""Likeness of a directory that has the rest of the path."""
MAX_ENTRIES = 5_000
MAX_DEPTH = 3
SHALLOW = 3
"""Parts of a directory, such as a home, that is too general to look through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """environment: for PATH. directory: the caller's, to which relative paths belong. sandbox: the
    preferred mechanism, in which programs run.
    """

    environment: Mapping[str, str]
    directory: Path
    sandbox: str = "auto"

    def has(self, program: str) -> bool:
        """Whether a program is on PATH."""
        return shutil.which(program, path=self.environment.get("PATH")) is not None

    def help_of(self, program: str, *words: str) -> str:
        """Return what a program prints for ``--help``; "" if it cannot be run. It runs in the
        sandbox, with the system's programs, no other file but itself, and without network.
        """
        found = shutil.which(program, path=self.environment.get("PATH"))
        if found is None:
            return ""
        bounds = ScriptBounds(read=(Path(found), Path(os.path.realpath(found))), timeout_s=HELP_S)
        try:
            done = run_script(
                [found, *words, "--help"],
                bounds,
                mechanism=choose(self.sandbox, scripts=True),
                cwd=None,
                environment={"PATH": self.environment.get("PATH", ""), "LC_ALL": "C.UTF-8"},
            )
        except (UncagedError, OSError):
            return ""
        return (done.stdout + done.stderr).decode("utf-8", "replace")

    def run_python(self, program: str, request: str, reads: Sequence[Path], directory: Path) -> str:
        """Run a Python program in the sandbox, with these files for reading and without network;
        return its output, "" if it fails.

        Args:
            request: its standard input. directory: a private one, for the program's text.
        """
        file = directory / "program.py"
        file.write_text(program, "utf-8")
        file.chmod(0o444)
        directory.chmod(0o755)
        python = find_interpreter().executable
        bounds = ScriptBounds(
            read=(directory, *reads, *python_prefixes(python)),
            timeout_s=SEARCH_S,
            output_bytes=OUTPUT_BYTES,
        )
        try:
            done = run_script(
                [str(python), "-I", "-B", "-X", "utf8", str(file)],
                bounds,
                mechanism=choose(self.sandbox, scripts=True),
                cwd=None,
                environment={"PATH": self.environment.get("PATH", ""), "LC_ALL": "C.UTF-8"},
                stdin=request.encode(),
            )
        except (UncagedError, OSError):
            return ""
        return done.stdout.decode("utf-8", "replace") if done.exit_code == 0 else ""

    def moved(self, path: Path) -> tuple[Path, ...]:
        """Return the existing paths that may be a missing one: its name further down or beside, or
        a name that is like it at the same place.
        """
        anchor, rest = _nearest(path)
        if anchor == Path(anchor.root) or not rest:
            return ()
        found: dict[Path, float] = {}
        missing, tail = rest[0], rest[1:]
        for entry in _entries(anchor):
            score = likeness(_stem(missing), _stem(entry.name))
            moved = entry.joinpath(*tail)
            least = LIKE_ABOVE if tail else LIKE
            if score >= least and entry.suffix == Path(missing).suffix and moved.exists():
                found[moved] = score
        for other in _below(anchor, path.name):
            if anchor == path.parent or other.parent.name == path.parent.name:
                found.setdefault(other, 1.0)
        above = path.parent.parent
        if not found and anchor == path.parent and len(above.parts) > SHALLOW:
            found.update(dict.fromkeys(_below(above, path.name), 1.0))
        return tuple(sorted(found))


def _stem(name: str) -> str:
    return Path(name).stem


def _nearest(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the nearest directory above a path that exists, and the rest of the path."""
    anchor = path.parent
    while not anchor.is_dir() and anchor != anchor.parent:
        anchor = anchor.parent
    return anchor, path.relative_to(anchor).parts


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())[:MAX_ENTRIES]
    except OSError:
        return []


def _below(directory: Path, name: str) -> Iterator[Path]:
    """Yield the paths with a name in a directory and in those below it."""
    level, seen = [directory], 0
    for _ in range(MAX_DEPTH):
        deeper: list[Path] = []
        for one in level:
            for entry in _entries(one):
                seen += 1
                if seen > MAX_ENTRIES:
                    return
                if entry.name == name:
                    yield entry
                if entry.is_dir() and not entry.is_symlink() and not entry.name.startswith("."):
                    deeper.append(entry)
        level = deeper
