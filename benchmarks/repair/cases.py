"""Cases of the measurement: one broken place in one release of a library each, read from the data
files beside this module.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

Kind = Literal["fixes", "mutants"]
KINDS: Sequence[Kind] = ("fixes", "mutants")
PROMPT = "make the tests pass"


class CaseMismatch(Exception):
    """The released file does not have the recorded text at the recorded line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Broken place. The lines *released*, which begin at *line*, are replaced by *broken*.

    failing: tests that fail then. already: tests that fail in the release as well.
    """

    name: str
    kind: Kind
    library: str
    release: str
    file: str
    line: int
    released: str
    broken: str
    failing: tuple[str, ...]
    already: tuple[str, ...]

    @property
    def version(self) -> str:
        return self.release.rpartition("-")[2]

    @property
    def prompt(self) -> str:
        """Return the task of the run. It names the tests only where others fail in the release."""
        return f"{PROMPT}: {', '.join(self.failing[:3])}" if self.already else PROMPT

    def break_text(self, text: str) -> str:
        """Return the released *text* with the broken place in it."""
        lines = text.splitlines(keepends=True)
        first, last = self.line - 1, self.line - 1 + len(self.released.splitlines())
        if "".join(lines[first:last]) != self.released:
            raise CaseMismatch(f"{self.name}: {self.file}:{self.line} of {self.release} differs")
        return "".join([*lines[:first], self.broken, *lines[last:]])


def read_cases(kind: Kind, directory: Path | None = None) -> list[Case]:
    """Return the cases of the data file *kind*, in its order."""
    path = (directory or Path(__file__).parent) / f"{kind}.json"
    return [case_of(kind, entry) for entry in json.loads(path.read_text("utf-8"))]


def case_of(kind: Kind, entry: dict[str, object]) -> Case:
    """Return the case of one JSON object."""
    return Case(
        name=str(entry["name"]),
        kind=kind,
        library=str(entry["library"]),
        release=str(entry["release"]),
        file=str(entry["file"]),
        line=int(str(entry["line"])),
        released=str(entry["released"]),
        broken=str(entry["broken"]),
        failing=tuple(cast("list[str]", entry["failing"])),
        already=tuple(cast("list[str]", entry.get("already", []))),
    )
