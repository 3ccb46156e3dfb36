"""Durations, ages and clock times as text, and parsing of durations."""

from __future__ import annotations

import re
from datetime import datetime

from uncaged_bundles.errors import UsageError

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

UNITS_MS = {
    "s": SECOND_MS,
    "m": MINUTE_MS,
    "min": MINUTE_MS,
    "h": HOUR_MS,
    "d": DAY_MS,
    "w": 7 * DAY_MS,
}


def spell(duration_ms: int) -> str:
    """Return ``12 ms``, ``3.2 s``, ``42 s``, ``2 min``, ``2 min 5 s``, ``1 h 20 min`` or ``3 d 4
    h``.
    """
    duration_ms = max(0, duration_ms)
    if duration_ms < 100:
        return f"{duration_ms} ms"
    if duration_ms < 9_950:
        return f"{duration_ms / SECOND_MS:.1f} s"
    if duration_ms < 59_500:
        return f"{duration_ms / SECOND_MS:.0f} s"
    if duration_ms < 10 * MINUTE_MS:
        return _pair(round(duration_ms / SECOND_MS), 60, "min", "s")
    if duration_ms < DAY_MS:
        minutes = round(duration_ms / MINUTE_MS)
        return f"{minutes} min" if minutes < 60 else _pair(minutes, 60, "h", "min")
    return _pair(round(duration_ms / HOUR_MS), 24, "d", "h")


def ago(then_ms: int, now_ms: int) -> str:
    """Return ``3 min ago``; after a week the date."""
    passed_ms = now_ms - then_ms
    if passed_ms >= 7 * DAY_MS:
        return datetime.fromtimestamp(then_ms / 1000).date().isoformat()
    for unit_ms, word in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min")):
        if passed_ms >= unit_ms:
            return f"{passed_ms // unit_ms} {word} ago"
    return "just now" if passed_ms < 2 * SECOND_MS else f"{passed_ms // SECOND_MS} s ago"


def clock_time(then_ms: int) -> str:
    """Return local date and time to the second."""
    return datetime.fromtimestamp(then_ms / 1000).strftime("%Y-%m-%d %H:%M:%S")


def parse_age(text: str, *, example: str = "30d") -> int:
    """Return the milliseconds of ``30d``, ``12h``, ``45min`` or ``2w``."""
    match = re.fullmatch(r"\s*(\d{1,9})\s*([a-z]+)\s*", text.lower())
    if match is None or match[2] not in UNITS_MS:
        raise UsageError(
            f"{text!r} is no length of time; write a whole number and one of {', '.join(UNITS_MS)}, as in {example}"
        )
    return int(match[1]) * UNITS_MS[match[2]]


def _pair(amount: int, size: int, big: str, small: str) -> str:
    whole, rest = divmod(amount, size)
    return f"{whole} {big} {rest} {small}" if rest else f"{whole} {big}"
