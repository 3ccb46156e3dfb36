"""Live view on a terminal: finished steps scroll up, the step in flight is updated below them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text
from uncaged_bundles.clean import clean, shorten
from uncaged_engine.threads.ending import Ending
from uncaged_engine.threads.timeline import OpenStep, Record

from .durations import spell
from .header import header_line
from .output import Piece, next_step
from .plain import FollowedRecord, ending_lines, row_pieces, skipped_line
from .progress import SEPARATOR, EffectProgress
from .step_details import step_details
from .step_labels import open_label

REFRESHES_PER_S = 8


class LiveView:
    """The live view on *console*, with one updated line for the effect in flight."""

    def __init__(
        self,
        console: Console | None = None,
        *,
        verbose: bool = False,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._verbose = verbose
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        self._line = ProgressLine(now_ms)
        self._live = Live(
            self._line, console=self._console, transient=True, refresh_per_second=REFRESHES_PER_S
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.step = None
        self._live.stop()

    def start(self, start: Record) -> None:
        self._print([header_line(start)])

    def skipped(self, steps: int) -> None:
        self._print([skipped_line(steps)])

    def record(self, followed: FollowedRecord) -> None:
        self._line.step, self._line.progress = followed.open, EffectProgress()
        if followed.row is not None:
            self._print(row_pieces(followed.row, width=self._console.width))
            for line in step_details(followed.record) if self._verbose else ():
                self._print([line])

    def progress(self, body: Mapping[str, object]) -> None:
        self._line.progress.add(body)

    def end(self, ending: Ending, thread: Mapping[str, object]) -> None:
        self._line.step = None
        self._live.stop()
        for line in ending_lines(ending, thread):
            self._print(line)
        for command in ending.commands:
            next_step(command)

    def _print(self, pieces: list[Piece]) -> None:
        line = Text()
        for piece in pieces:
            if isinstance(piece, str):
                line.append(clean(piece))
            else:
                line.append(clean(piece.text), style=piece.colour)
        self._console.print(line, soft_wrap=False)


class ProgressLine:
    """The updated line of the step in flight: spinner, number, label, elapsed time, progress."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.step: OpenStep | None = None
        self.progress = EffectProgress()
        self._now_ms = now_ms
        self._spinner = Spinner("dots", style="cyan")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        step = self.step
        if step is None:
            return
        attempt = f" (attempt {step.attempt})" if step.attempt > 1 else ""
        begun = f"{open_label(step)}{attempt}  {spell_seconds(self._now_ms() - step.started_ms)}"
        words = SEPARATOR.join(part for part in (begun, self.progress.line) if part)
        self._spinner.update(text=Text(shorten(f"{step.seq}  {words}", options.max_width - 3)))
        yield self._spinner


def spell_seconds(duration_ms: int) -> str:
    """Format a duration; below a minute in whole seconds, since tenths would flicker."""
    return (
        f"{max(0, duration_ms) // 1000} s"
        if duration_ms < 60_000
        else spell(duration_ms // 1000 * 1000)
    )
