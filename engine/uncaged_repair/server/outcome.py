"""Supervision of single tests: limits, tracing, and the message with the outcome, the cost, and for
a failure the frames in the repository.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .forks import limit_cpu
from .wire import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType, TracebackType

    from .trace import LineTracer

    Place = tuple[str, int, str]

MAX_FRAMES = 40
MAX_CHARACTERS = 400


class Supervisor:
    """Supervisor of the tests of a run. emit: sends a message to the server."""

    def __init__(
        self,
        root: Path,
        emit: Callable[[Message], None],
        cpu_s: float,
        wall_s: float,
        lines: LineTracer | None,
    ) -> None:
        self._root, self.emit, self._cpu_s, self._wall_s, self._lines = (
            root,
            emit,
            cpu_s,
            wall_s,
            lines,
        )
        self._cpu = 0.0
        self._name = ""

    def begin(self, name: str) -> None:
        """Announce the test *name*, and start its limits and its tracing."""
        self.emit({"start": name, "limit_s": self._wall_s})
        self._name, self._cpu = name, time.process_time()
        limit_cpu(self._cpu_s, self._overrun if self._lines is not None else None)
        if self._lines is not None:
            self._lines.start()

    def done(
        self, outcome: str, error: BaseException | None, places: list[Place] | None = None
    ) -> None:
        """Send the outcome of the test that began last. places: where it failed, if *error* does
        not know.
        """
        if self._lines is not None:
            self._lines.stop()
        cpu_s = time.process_time() - self._cpu
        message: Message = {"test": self._name, "outcome": outcome, "cpu_s": round(cpu_s, 6)}
        if error is not None:
            message["error"] = [type(error).__name__, _sentence(error)]
            places = (
                _places(_unwound(error.__traceback__), self._root) if places is None else places
            )
        if places:
            message["frames"] = places[-MAX_FRAMES:]
        if self._lines is not None:
            message.update(self._lines.report())
        self.emit(message)

    def _overrun(self, signal: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the shape of a signal handler
        """Send the traced lines of a test whose processor time is used up, then exit."""
        stack = []
        while frame is not None:
            stack.append((frame, frame.f_lineno))
            if self._lines is not None:
                self._lines.look(frame)
            frame = frame.f_back
        self.done("timeout", None, _places(reversed(stack), self._root))
        os._exit(0)


def _unwound(traceback: TracebackType | None) -> Iterable[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _places(frames: Iterable[tuple[FrameType, int]], root: Path) -> list[Place]:
    """Return (path, line, function) of the frames that lie in *root*, outermost first."""
    found = []
    for frame, line in frames:
        path = Path(frame.f_code.co_filename).absolute()
        if root in path.parents and not path.name.startswith("<"):
            found.append((path.relative_to(root).as_posix(), line, frame.f_code.co_name))
    return found


def _sentence(error: BaseException) -> str:
    try:
        return str(error)[:MAX_CHARACTERS]
    except Exception:  # the repository's own __str__ may raise anything
        return ""
