"""Output on stdout and stderr. Text is stripped of control sequences first and coloured after that;
results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import TextIO

import click
from uncaged_bundles.clean import clean
from uncaged_bundles.records import dataclass


@dataclass(frozen=True, slots=True)
class Styled:
    """Text with a colour, for streams that take colour."""

    text: str
    colour: str


Piece = str | Styled
PIPE_COLUMNS = 240
PROGRAM = "uncaged-workflow"

STATUS_COLOURS = {
    "running": "cyan",
    "completed": "green",
    "failed": "red",
    "killed": "red",
    "corrupt": "red",
    "unknown": "yellow",
    "interrupted": "yellow",
    "limit": "yellow",
    "paused": "yellow",
    "waiting": "yellow",
}


def result(*pieces: Piece) -> None:
    """Print one line of the result, on stdout."""
    write(sys.stdout, *pieces)


def table(lines: Iterable[Iterable[Piece]]) -> None:
    """Print several lines of the result at once, on stdout."""
    write_lines(sys.stdout, lines)


def note(*pieces: Piece) -> None:
    """Print a note, a warning or an error, on stderr."""
    write(sys.stderr, *pieces)


def next_step(command: str) -> None:
    """Print a suggested next command, on stderr. One of a thread in a shared store names the store;
    one that works on directories alone is left out there.
    """
    from ..inputs.stores import on_same_store

    chosen = on_same_store(command)
    if chosen is not None:
        note(Styled("next: ", "bright_black"), runnable_command(chosen))


def next_run(flow: str, parameters: Sequence[str]) -> None:
    """Print the command that runs a flow with other values of its first parameters."""
    options = "".join(f" --param {name}=…" for name in parameters[:3])
    next_step(f"{PROGRAM} run {flow}{options}")


def runnable_command(command: str) -> str:
    """Return *command* with the path of this program if its name is not on PATH."""
    called = sys.argv[0]
    if (
        not command.startswith(PROGRAM + " ")
        or Path(called).name != PROGRAM
        or os.sep not in called
    ):
        return command
    found = (
        Path(directory, PROGRAM)
        for directory in os.environ.get("PATH", "").split(os.pathsep)
        if directory
    )
    if any(os.access(path, os.X_OK) for path in found):
        return command
    return quote(called) + command.removeprefix(PROGRAM)


def write(stream: TextIO, *pieces: Piece) -> None:
    """Print *pieces* as one line, flushed."""
    write_lines(stream, [pieces])


def write_lines(stream: TextIO, lines: Iterable[Iterable[Piece]]) -> None:
    """Print each of *lines*, and flush once."""
    colour = takes_colour(stream)
    stream.write(
        "".join("".join([paint(piece, colour=colour) for piece in line]) + "\n" for line in lines)
    )
    stream.flush()


def paint(piece: Piece, *, colour: bool) -> str:
    if isinstance(piece, str):
        return clean(piece)
    text = clean(piece.text)
    return click.style(text, fg=piece.colour) if colour and text else text


def takes_colour(stream: TextIO) -> bool:
    return (
        is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # a closed stream
        return False


def text_width(stream: TextIO, *, full: bool = False) -> int | None:
    """Return the width to which long texts are shortened on *stream*; None if *full*."""
    return None if full else width_of(stream) or PIPE_COLUMNS


def width_of(stream: TextIO) -> int | None:
    """Return the width of the terminal behind *stream*; None if it is not a terminal."""
    if not is_terminal(stream):
        return None
    from shutil import get_terminal_size  # it brings every compression module

    return max(20, get_terminal_size().columns)


def status(word: str) -> Piece:
    return Styled(word, STATUS_COLOURS.get(word, "white"))
