"""Crash windows: the ``# crash here`` comments of the code, and the source line of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("bundles", "engine", "roles", "templates", "cli")
_COMMENT = re.compile(r"# crash here[,:]? *(.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A crash window.

    text: the comment after "crash here". line: the first line that runs when the window is open.
    """

    path: Path
    line: int
    text: str


def windows() -> Iterator[Window]:
    """Return all windows."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            lines = path.read_text("utf-8").splitlines()
            for number, line in enumerate(lines, start=1):
                if found := _COMMENT.search(line):
                    text = " ".join([found[1], *_continued(lines, number)])
                    yield Window(path=path, line=_first_code(lines, number), text=text)


def window(text: str) -> Window:
    """Return the window with this comment."""
    [found] = [one for one in windows() if one.text == text]
    return found


def place(path: Path, code: str) -> Window:
    """Before the first line with this code."""
    number = next(
        number
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if code in line
    )
    return Window(path=path, line=number, text=code)


def _continued(lines: list[str], number: int) -> Iterator[str]:
    """Yield the further lines of a comment on lines of its own."""
    if lines[number - 1].lstrip().startswith("#"):
        while lines[number].lstrip().startswith("#"):
            yield lines[number].strip("# ")
            number += 1


def _first_code(lines: list[str], number: int) -> int:
    """The comment's own line if there is code before it, else the next line that is no comment."""
    while lines[number - 1].lstrip().startswith("#"):
        number += 1
    return number
