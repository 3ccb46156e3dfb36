"""Time limits that end as soon as a program is at a certain place, however long that takes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

LATER_S = 100_000.0
"""Longer than any time limit."""


def over_at(patch: pytest.MonkeyPatch, path: Path) -> None:
    """Let the time limits of this process be over once a file is there.

    The program that makes it reads its input to the end first, which comes when its time has begun,
    and prints something afterwards, so that this process looks at the clock.
    """
    now_s = time.monotonic
    patch.setattr(time, "monotonic", lambda: now_s() + LATER_S * path.exists())
