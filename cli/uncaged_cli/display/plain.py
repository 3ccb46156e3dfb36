"""Plain view of a followed thread: one line per finished step, details on demand, nothing that
moves.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TextIO

from uncaged_bundles.clean import columns, shorten
from uncaged_engine.threads.ending import Ending
from uncaged_engine.threads.timeline import OpenStep, Record, Row

from .durations import spell
from .header import header_line
from .output import STATUS_COLOURS, Piece, Styled, next_step, text_width, write
from .progress import EffectProgress, spell_usage
from .step_details import step_details
from .step_labels import open_label

MARK_COLOURS = {
    "done": "green",
    "failed": "red",
    "void": "yellow",
    "attempt": "yellow",
    "control": "blue",
}
LABEL_COLUMNS = 10
TIME_COLUMNS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRecord:
    """A record of a followed thread, the row that it completes, and the step in flight after it."""

    record: Record
    row: Row | None
    open: OpenStep | None


class FollowView(Protocol):
    """View of a followed thread: start record, number of skipped steps, records, progress, end."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def start(self, start: Record) -> None: ...
    def skipped(self, steps: int) -> None: ...
    def record(self, followed: FollowedRecord) -> None: ...
    def progress(self, body: Mapping[str, object]) -> None: ...
    def end(self, ending: Ending, thread: Mapping[str, object]) -> None: ...


class PlainView:
    """The plain view on *stream*."""

    def __init__(self, stream: TextIO | None = None, *, verbose: bool = False) -> None:
        self._stream = stream or sys.stdout
        self._verbose = verbose
        self._open: OpenStep | None = None
        self._progress = EffectProgress()
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def start(self, start: Record) -> None:
        write(self._stream, header_line(start))

    def skipped(self, steps: int) -> None:
        write(self._stream, Styled(skipped_line(steps), "bright_black"))

    def record(self, followed: FollowedRecord) -> None:
        self._open, self._progress = followed.open, EffectProgress()
        if followed.row is not None:
            write(self._stream, *row_pieces(followed.row, width=text_width(self._stream)))
            for line in step_details(followed.record) if self._verbose else ():
                write(self._stream, line)

    def progress(self, body: Mapping[str, object]) -> None:
        """Print the progress of a step if it changed: with `verbose`, for a failed attempt, or for
        a child that waits for a person.
        """
        self._progress.add(body)
        work = self._progress.work
        if (
            (self._verbose or "try" in body or "waits" in body)
            and self._open is not None
            and work
            and work != self._shown
        ):
            self._shown = work
            label = open_label(self._open)
            label += " " * (LABEL_COLUMNS - columns(label))
            write(
                self._stream,
                f"{self._open.seq:>4}  ",
                Styled(f"{label}  {'…':>{TIME_COLUMNS}}  {work}", "bright_black"),
            )

    def end(self, ending: Ending, thread: Mapping[str, object]) -> None:
        for line in ending_lines(ending, thread):
            write(self._stream, *line)
        for command in ending.commands:
            next_step(command)


def row_pieces(row: Row, *, width: int | None) -> list[Piece]:
    """Return one line: number, label, duration, detail, agent."""
    label = row.label if width is None else shorten(row.label, max(LABEL_COLUMNS, width // 2))
    label += " " * (LABEL_COLUMNS - columns(label))
    took = spell(row.duration_ms) if row.duration_ms is not None else ""
    head = f"{row.seq:>4}  "
    middle = f"  {took:>{TIME_COLUMNS}}  "
    word = "" if row.mark in ("done", "attempt", "control", "void") else f"{row.mark}: "
    tail = f"  [{row.by}]" if row.by and row.by != "bundle" else ""
    detail = word + row.detail
    if width is not None:
        room = width - len(head) - columns(label) - len(middle)
        tail = tail if room - columns(tail) >= 20 else ""
        detail = shorten(detail, max(8, room - columns(tail)))
    colour = MARK_COLOURS[row.mark]
    shown: Piece = detail if row.mark == "done" else Styled(detail, colour)
    return [head, Styled(label, colour), middle, shown, Styled(tail, "bright_black")]


def ending_lines(ending: Ending, thread: Mapping[str, object]) -> list[list[Piece]]:
    """Return the closing lines: status, duration, message, usage and branch."""
    # a limit of time does not count the time in which the thread had no worker
    took = thread.get("ranMs" if ending.word == "limit" else "tookMs")
    word = Styled(ending.word, STATUS_COLOURS.get(ending.word, "yellow"))
    head: list[Piece] = [word, f" after {spell(took)}" if isinstance(took, int) else ""]
    lines: list[list[Piece]] = [[*head, f": {ending.message}" if ending.message else ""]]
    lines += [[detail] for detail in ending.details]
    if used := spell_usage(thread.get("used")):
        lines.append(["used: ", used])
    if ending.branch:
        lines.append(["branch: ", ending.branch])
    return lines


def skipped_line(steps: int) -> str:
    return f"      {steps} step{'' if steps == 1 else 's'} before this"
