"""Due times of cron expressions, at both changes of the clock."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_schedules.timing import MAX_COUNTED, DueTimes, parse_timing

BERLIN = "Europe/Berlin"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def at(text: str) -> int:
    """A moment with its offset, as ``2026-03-29T03:00+02:00``, in milliseconds."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def due(cron: str, after: str, until: str, zone: str = BERLIN) -> list[str]:
    """The due times after a moment and up to another, as the zone's clock shows them."""
    timing, now_ms, found = parse_timing(cron, zone), at(after), []
    while (next_ms := timing.next_after(now_ms)) is not None and next_ms <= at(until):
        found.append(
            datetime.fromtimestamp(next_ms / 1000, ZoneInfo(zone)).isoformat("T", "minutes")
        )
        now_ms = next_ms
    times = timing.between(at(after), at(until))
    assert (times.count if times else 0) == len(found)
    assert times is None or times.latest_ms == at(found[-1])
    return found


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        # 02:00 to 03:00 does not exist on the 29th
        ("30 2 * * *", ["2026-03-28T02:30+01:00", "2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
        ("0 3 * * *", ["2026-03-28T03:00+01:00", "2026-03-29T03:00+02:00", "2026-03-30T03:00+02:00"]),
        ("0,30 2 29 * *", ["2026-03-29T03:00+02:00"]),
        ("0 1-3 29 * *", ["2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"]),
        ("0 * 29 3 *", None),
    ],
)  # fmt: skip
def test_a_time_that_the_change_to_summer_skips_is_due_once(
    cron: str, expected: list[str] | None
) -> None:
    """A skipped time of day is due right after the change; hourly runs are 23 on that day."""
    found = due(cron, "2026-03-28T00:00+01:00", "2026-03-30T12:00+02:00")
    assert found == expected if expected is not None else len(found) == 23


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        # 02:00 to 03:00 is shown twice on the 25th
        ("30 2 * * *", ["2026-10-24T02:30+02:00", "2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
        ("0 3 * * *", ["2026-10-24T03:00+02:00", "2026-10-25T03:00+01:00", "2026-10-26T03:00+01:00"]),
        ("0,30 2 25 * *", ["2026-10-25T02:00+02:00", "2026-10-25T02:30+02:00"]),
        ("*/30 2 25 10 *", ["2026-10-25T02:00+02:00", "2026-10-25T02:30+02:00", "2026-10-25T02:00+01:00", "2026-10-25T02:30+01:00"]),
        ("0 * 25 10 *", None),
    ],
)  # fmt: skip
def test_a_time_that_the_change_to_winter_repeats_is_due_once(
    cron: str, expected: list[str] | None
) -> None:
    """A repeated time of day is due at its first occurrence; runs that count real time are due in
    both.
    """
    found = due(cron, "2026-10-24T00:00+02:00", "2026-10-26T12:00+01:00")
    assert found == expected if expected is not None else len(found) == 25


def test_a_schedule_of_the_repeated_hour_is_not_due_in_the_past() -> None:
    """Added in the second 02:10, a daily 02:30 is due tomorrow, not forty minutes ago."""
    after = "2026-10-25T02:10+01:00"
    assert due("30 2 * * *", after, "2026-10-26T12:00+01:00") == ["2026-10-26T02:30+01:00"]


@pytest.mark.parametrize(
    "zone", ["Australia/Lord_Howe", "America/New_York", "Asia/Kathmandu", "UTC"]
)
def test_a_daily_time_is_due_once_on_each_day_of_a_year(zone: str) -> None:
    """Each local date has one due time, also with a change of half an hour."""
    found = due("5 2 * * *", "2026-01-01T00:00+00:00", "2026-12-31T00:00+00:00", zone)
    days = [one[:10] for one in found]
    assert len(set(days)) == len(days) == 364


def test_due_times_of_long_intervals_are_found_quickly() -> None:
    """The latest time of a minute's expression after ten years costs no walk through them; the
    count stops.
    """
    begin = at("2016-01-01T00:00+00:00")
    minutely = parse_timing("* * * * *", "UTC")
    assert minutely.between(begin, begin + 3653 * DAY_MS + 1) == DueTimes(
        latest_ms=begin + 3653 * DAY_MS, count=MAX_COUNTED
    )
    leap = parse_timing("0 0 29 2 *", "UTC")
    found = leap.between(begin, at("2027-01-01T00:00+00:00"))
    assert found == DueTimes(latest_ms=at("2024-02-29T00:00+00:00"), count=3)
    assert leap.between(begin, begin) is None
    assert leap.between(begin, begin - DAY_MS) is None


@pytest.mark.parametrize(
    ("cron", "zone", "message"),
    [
        ("0 25 * * *", BERLIN, "its hour is not valid"),
        ("0 0 * *", BERLIN, "five fields"),
        ("*/5 0 0 * * *", BERLIN, "five fields"),
        ("@reboot", BERLIN, "five fields"),
        ("0 0 30 2 *", BERLIN, "its day-of-month is not valid"),
        ("0 0 * * *", "Europe/Berln", "did you mean Europe/Berlin"),
        ("0 0 * * *", "../../etc/passwd", "no time zone"),
        ("0 0 * * *", "", "no time zone"),
        ("* " * 300, BERLIN, "five fields"),
    ],
)
def test_a_wrong_expression_or_zone_is_refused(cron: str, zone: str, message: str) -> None:
    """The message says what is wrong, with the nearest zone."""
    with pytest.raises(UsageError, match=message):
        parse_timing(cron, zone)


def test_names_of_expressions_are_known_in_any_case() -> None:
    """``@Daily`` is midnight of the zone."""
    assert due("@Daily", "2026-07-01T12:00+02:00", "2026-07-02T12:00+02:00") == [
        "2026-07-02T00:00+02:00"
    ]
