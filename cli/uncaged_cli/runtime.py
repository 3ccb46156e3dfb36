"""A verb meets the store and the clock here, and imports the engine no earlier than that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uncaged_engine.api import Engine


def open_engine() -> Engine:
    """Open the person's store, and say what could not be added to it."""
    from uncaged_engine.api import Engine

    engine = Engine.open()
    if engine.problems:
        from .display.output import Styled, note

        for problem in engine.problems:
            note(Styled("warning: ", "yellow"), problem)
    return engine


def now_ms() -> int:
    return time.time_ns() // 1_000_000
