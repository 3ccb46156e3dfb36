"""A verb meets the store and the clock here, and imports the engine no earlier than that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uncaged_engine.api import Engine


def open_engine() -> Engine:
    """Open the person's store."""
    from uncaged_engine.api import Engine

    return Engine.open()


def now_ms() -> int:
    return time.time_ns() // 1_000_000
