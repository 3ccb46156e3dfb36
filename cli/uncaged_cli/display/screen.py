"""Whatever this command prints passes through here: cleaned first, coloured afterwards, results on stdout and the rest on stderr."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TextIO

import click

from .clean import clean


@dataclass(frozen=True, slots=True)
class Styled:
    """Text with a colour, for streams that take colour."""

    text: str
    colour: str


Piece = str | Styled

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
    """Print one piece of what was asked for, on stdout."""
    write(sys.stdout, *pieces)


def note(*pieces: Piece) -> None:
    """Print a hint, a warning or an error, on stderr."""
    write(sys.stderr, *pieces)


def next_step(command: str) -> None:
    """Name the next useful command."""
    note(Styled("next: ", "bright_black"), command)


def write(stream: TextIO, *pieces: Piece) -> None:
    """Print *pieces* as one line, flushed."""
    stream.write("".join(paint(piece, colour=takes_colour(stream)) for piece in pieces) + "\n")
    stream.flush()


def paint(piece: Piece, *, colour: bool) -> str:
    if isinstance(piece, str):
        return clean(piece)
    text = clean(piece.text)
    return click.style(text, fg=piece.colour) if colour and text else text


def takes_colour(stream: TextIO) -> bool:
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # a closed stream
        return False


def width_of(stream: TextIO) -> int | None:
    """Return the columns of the terminal behind *stream*; None when there is no terminal and lines may be as long as they like."""
    if not is_terminal(stream):
        return None
    from shutil import get_terminal_size  # it brings every compression module

    return max(20, get_terminal_size().columns)


def status(word: str) -> Piece:
    return Styled(word, STATUS_COLOURS.get(word, "white"))
