"""Dates in a sentence as ISO texts. `dateparser` reads what the pattern of a date accepts; its
import and first use cost 0.5 s of CPU, which only a sentence with a date pays.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

from ..grammar import entities
from ..grammar.syntax import UNDEFINED

LANGUAGES = ["en"]
_DAY = re.compile(r"the (\d{1,2})(?:st|nd|rd|th)", re.IGNORECASE)
_LEAD = re.compile(r"(?:on|this|coming) ", re.IGNORECASE)


class DateReaders:
    """Readers of dates, times and their ranges, relative to a present moment."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def date(self, text: str) -> object:
        """Return ``2026-11-23`` for a date such as `tomorrow` or `3rd of march`."""
        words = " ".join(text.split())
        if entities.date(words) is UNDEFINED:
            return UNDEFINED
        today = self._now()
        if found := _DAY.fullmatch(words):
            return _next_day(today.date(), int(found[1]))
        import dateparser

        settings: Any = {
            "PREFER_DATES_FROM": "future",
            "RELATIVE_BASE": today.replace(tzinfo=None),
            "RETURN_AS_TIMEZONE_AWARE": False,
        }
        plain = _LEAD.sub("", words).replace("the day after tomorrow", "in 2 days")
        parsed = dateparser.parse(plain, languages=LANGUAGES, settings=settings)
        return UNDEFINED if parsed is None else parsed.date().isoformat()

    def time(self, text: str) -> object:
        """Return ``14:30`` for a time of the day."""
        return _clock(entities.time(text))

    def time_range(self, text: str) -> object:
        """Return start and end of a range of times."""
        found = entities.time_range(text)
        if not isinstance(found, dict):
            return UNDEFINED
        return {name: _clock(part) for name, part in found.items()}

    def day_range(self, text: str) -> object:
        """Return start and end of a range of days."""
        found = entities.day_range(text)
        if not isinstance(found, dict):
            return UNDEFINED
        if "text" in found:
            found = {"start": found}
        days = {name: self.date(str(part["text"])) for name, part in found.items()}
        return UNDEFINED if UNDEFINED in days.values() else days


def _clock(value: object) -> object:
    """Return a time as text."""
    match value:
        case {"hours24": int(hours), "minutes": int(minutes)}:
            return f"{hours:02d}:{minutes:02d}"
        case _:
            return UNDEFINED


def _next_day(today: date, day: int) -> object:
    """Return the next date with this day of the month."""
    for ahead in range(62):
        if (found := today + timedelta(days=ahead)).day == day:
            return found.isoformat()
    return UNDEFINED
