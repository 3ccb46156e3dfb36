"""Engine and clock of a verb. The engine is imported only when a verb opens it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uncaged_engine.api import Engine


def open_engine() -> Engine:
    """Open the store and print a warning for each shipped flow that could not be added."""
    from uncaged_engine.api import Engine

    engine = Engine.open()
    if engine.problems:
        from .display.output import Styled, note

        for problem in engine.problems:
            note(Styled("warning: ", "yellow"), problem)
    return engine


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def own_command() -> list[str]:
    """Return the words that run this command line, for a program that starts it later."""
    import shutil
    import sys
    from pathlib import Path

    from .display.output import PROGRAM

    beside = Path(sys.executable).with_name(PROGRAM)
    found = str(beside) if beside.exists() else shutil.which(PROGRAM)
    return [found] if found is not None else [sys.executable, "-m", "uncaged_cli"]
