"""Display of file changes: a line per file, then the patch in colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .output import Piece, Styled, result

if TYPE_CHECKING:
    from uncaged_agents.changes import FileChanges

SHORT_COMMIT = 12
HEADINGS = (
    "diff --git ",
    "index ",
    "--- ",
    "+++ ",
    "new file ",
    "deleted file ",
    "similarity ",
    "rename ",
    "old mode ",
    "new mode ",
)
COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def show_changes(found: FileChanges) -> None:
    """Print each file with its numbers of lines, and the patch."""
    if not found.files:
        result(
            f"no file differs between {found.before[:SHORT_COMMIT]} and {found.after[:SHORT_COMMIT]}"
        )
    for file in found.files:
        added, removed = file["added"], file["removed"]
        numbers: list[Piece] = (
            ["  binary"]
            if added is None
            else [Styled(f"  +{added}", "green"), Styled(f" -{removed}", "red")]
        )
        result(str(file["path"]), *numbers)
    for line in found.patch.splitlines():
        result(coloured(line))


def coloured(line: str) -> Piece:
    if line.startswith(HEADINGS):
        return Styled(line, "bright_black")
    return Styled(line, COLOURS[line[0]]) if line[:1] in COLOURS else line
