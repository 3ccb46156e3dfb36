"""Schedules as rows of a table and as JSON data."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from .output import Piece, Styled

if TYPE_CHECKING:
    from uncaged_schedules.schedule import Schedule

HEADERS = ("schedule", "flow", "cron", "next", "last thread", "problem")


def schedule_document(schedule: Schedule, now_ms: int) -> dict[str, object]:
    """Return a schedule with its next due time."""
    return {**schedule.document(), "nextMs": schedule.next_ms(now_ms)}


def schedule_row(schedule: Schedule, now_ms: int) -> list[Piece]:
    """Return the cells of a schedule's row."""
    return [
        Styled(schedule.name, "cyan"),
        schedule.flow,
        schedule.timing.cron,
        spell_next(schedule, now_ms),
        schedule.thread_id or "-",
        Styled(schedule.problem, "yellow") if schedule.problem else "",
    ]


def spell_next(schedule: Schedule, now_ms: int) -> str:
    """Return the next due time on the clock of the schedule's zone, or ``disabled``."""
    next_ms = schedule.next_ms(now_ms)
    if next_ms is None:
        return "disabled"
    zone = schedule.timing.timezone
    return f"{datetime.fromtimestamp(next_ms / 1000, ZoneInfo(zone)):%Y-%m-%d %H:%M} {zone}"
