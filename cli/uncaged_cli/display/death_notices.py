"""Notifications about threads that died, by a command that lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uncaged_bundles.errors import UncagedError

from .output import Styled, note

if TYPE_CHECKING:
    from uncaged_engine.api import Engine, ThreadSummary


def notify_deaths(engine: Engine, threads: Sequence[ThreadSummary]) -> None:
    """Notify the person of the interrupted and unknown ones; print a warning if that fails."""
    try:
        problems = engine.notify_deaths(threads)
    except (UncagedError, OSError) as exc:
        problems = [str(exc)]
    for problem in problems:
        note(Styled("warning: ", "yellow"), problem)
