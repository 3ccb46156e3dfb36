"""Due times of a cron expression in a time zone, as milliseconds since 1970.

The times are those of Debian's cron, from the library cronsim: a time of day that a change of the
clock skips is due once, right after the change; one that the clock shows twice is due once, at its
first occurrence. An expression with ``*`` in the minute or the hour counts real time through both
changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass

__all__ = ["DueTimes", "Timing", "local_timezone", "parse_timing"]

MAX_CHARACTERS = 200
MAX_COUNTED = 1000
MINUTE_MS = 60_000
WINDOWS_MS = tuple(minutes * MINUTE_MS for minutes in (60, 60 * 24, 60 * 24 * 32, 60 * 24 * 370))
"""How far back the latest due time is looked for, before the whole time is."""
NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DueTimes:
    """Due times of an interval. latest_ms: the last of them. count: how many there are, up to
    `MAX_COUNTED`.
    """

    latest_ms: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """A cron expression of five fields, or one of `NAMES`, and an IANA time zone. Make one with
    `parse_timing`.
    """

    cron: str
    timezone: str

    def next_after(self, after_ms: int) -> int | None:
        """Return the first due time after a moment; None if there is none in fifty years."""
        return next(self._after(after_ms), None)

    def between(self, after_ms: int, until_ms: int) -> DueTimes | None:
        """Return the due times after one moment and up to another; None if there are none."""
        for window_ms in (*WINDOWS_MS, max(until_ms - after_ms, 0)):
            start_ms = max(after_ms, until_ms - window_ms)
            last = deque(self._within(start_ms, until_ms), maxlen=1)
            if last:
                counted = islice(self._within(after_ms, last[0]), MAX_COUNTED)
                return DueTimes(latest_ms=last[0], count=sum(1 for _ in counted))
            if start_ms == after_ms:
                break
        return None

    def _within(self, after_ms: int, until_ms: int) -> Iterator[int]:
        for due_ms in self._after(after_ms):
            if due_ms > until_ms:
                return
            yield due_ms

    def _after(self, after_ms: int) -> Iterator[int]:
        begin = datetime.fromtimestamp(after_ms / 1000, UTC).astimezone(ZoneInfo(self.timezone))
        for moment in CronSim(NAMES.get(self.cron, self.cron), begin):
            due_ms = round(moment.timestamp() * 1000)
            # in an hour that the clock shows twice, cronsim counts from its first occurrence
            if due_ms > after_ms:
                yield due_ms


def parse_timing(cron: str, timezone: str) -> Timing:
    """Return the timing of an expression in a time zone.

    Raises:
        UsageError: the expression or the zone is not valid, or is never due.
    """
    spaced = " ".join(cron.split())
    named = spaced.lower() if spaced.startswith("@") else spaced
    fields = NAMES.get(named, named).split()
    if len(cron) > MAX_CHARACTERS or len(fields) != len("mhdmw"):
        raise UsageError(
            f"{cron[:MAX_CHARACTERS]!r} is no cron expression; write five fields: minute, hour, day, month, weekday,"
            f" as in '30 7 * * mon-fri', or one of {', '.join(NAMES)}"
        )
    try:
        ZoneInfo(timezone)
    except (LookupError, OSError, ValueError) as exc:  # a name that is none, or a path
        raise _unknown_zone(timezone) from exc
    timing = Timing(cron=named, timezone=timezone)
    try:
        due_ms = timing.next_after(0)
    except CronSimError as exc:
        problem = str(exc).removeprefix("Bad ")
        raise UsageError(f"{cron!r} is no cron expression: its {problem} is not valid") from exc
    if due_ms is None:
        raise UsageError(f"{cron!r} is never due; no month has that day")
    return timing


def local_timezone() -> str:
    """Return the name of this machine's time zone, or UTC if it has none."""
    from tzlocal import get_localzone_name

    try:
        return str(get_localzone_name() or "UTC")
    except (LookupError, OSError, ValueError):  # a link that leads nowhere, a zone without a name
        return "UTC"


def _unknown_zone(timezone: str) -> UsageError:
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    known = {name.lower(): name for name in available_timezones()}
    near = [known[name] for name in get_close_matches(timezone.lower(), known, n=3)]
    advice = f"did you mean {' or '.join(near)}?" if near else "write one such as Europe/Berlin"
    return UsageError(f"no time zone {timezone[:80]!r}; {advice}")
