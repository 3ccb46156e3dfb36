"""Durations, ages and dates as text."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_cli.display.durations import DAY_MS, HOUR_MS, MINUTE_MS, ago, parse_age, spell


@pytest.mark.parametrize(
    ("duration_ms", "words"),
    [
        (-5, "0 ms"),
        (12, "12 ms"),
        (99, "99 ms"),
        (100, "0.1 s"),
        (3_210, "3.2 s"),
        (9_949, "9.9 s"),
        (9_950, "10 s"),
        (42_400, "42 s"),
        (59_499, "59 s"),
        (59_500, "1 min"),
        (120_000, "2 min"),
        (125_000, "2 min 5 s"),
        (10 * MINUTE_MS, "10 min"),
        (HOUR_MS, "1 h"),
        (80 * MINUTE_MS, "1 h 20 min"),
        (DAY_MS, "1 d"),
        (76 * HOUR_MS, "3 d 4 h"),
    ],
)
def test_a_duration_is_said_as_a_person_would(duration_ms: int, words: str) -> None:
    """Two units at most, tenths only below ten seconds."""
    assert spell(duration_ms) == words


@pytest.mark.parametrize(
    ("passed_ms", "words"),
    [
        (-1, "just now"),
        (1_999, "just now"),
        (30_000, "30 s ago"),
        (MINUTE_MS, "1 min ago"),
        (5 * HOUR_MS, "5 h ago"),
        (6 * DAY_MS, "6 d ago"),
    ],
)
def test_a_recent_time_is_said_by_its_distance(passed_ms: int, words: str) -> None:
    """Below a week, the distance; a clock that was set back is no error."""
    now_ms = 1_714_963_200_000
    assert ago(now_ms - passed_ms, now_ms) == words


def test_an_old_time_is_said_by_its_date() -> None:
    """After a week, the date."""
    assert ago(1_714_963_200_000 - 30 * DAY_MS, 1_714_963_200_000).startswith("2024-04-0")


@pytest.mark.parametrize(
    ("text", "age_ms"),
    [
        ("30d", 30 * DAY_MS),
        ("12 h", 12 * HOUR_MS),
        ("45min", 45 * MINUTE_MS),
        ("2W", 14 * DAY_MS),
        ("0d", 0),
    ],
)
def test_an_age_is_a_number_and_a_unit(text: str, age_ms: int) -> None:
    """All units that a person would type, in any case."""
    assert parse_age(text) == age_ms


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1.5h", "3 parsecs", "9999999999d"])
def test_another_age_is_refused_with_an_example(text: str) -> None:
    """The message repeats the word and shows a right one."""
    with pytest.raises(UsageError, match="30d"):
        parse_age(text)
