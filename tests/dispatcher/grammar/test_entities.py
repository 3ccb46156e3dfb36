"""Built-in entity types: accepted texts, their values, and texts that are no such entity."""

from __future__ import annotations

import pytest
from uncaged_dispatcher.grammar.entities import ENTITY_READERS
from uncaged_dispatcher.grammar.syntax import UNDEFINED


def at(hours: int, minutes: int = 0) -> dict[str, int]:
    """Return a time of the day."""
    return {"hours24": hours, "minutes": minutes}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("Ordinal", "third", 3),
        ("Ordinal", "21st", 21),
        ("Ordinal", "Twenty-Ninth", 29),
        ("Ordinal", "thirtieth", 30),
        ("Ordinal", "hundredth", 100),
        ("Cardinal", "42", 42),
        ("Cardinal", "1,200", 1200),
        ("Cardinal", "three hundred and five", 305),
        ("Cardinal", "two thousand twenty four", 2024),
        ("Percentage", "12.5 percent", 12.5),
        ("Percentage", "80%", 80),
        ("Percentage", "fifty percent", 50),
        ("CalendarDate", "next friday", {"text": "next friday"}),
        ("CalendarDate", "July 4th, 2027", {"text": "July 4th, 2027"}),
        ("CalendarDate", "2027-01-31", {"text": "2027-01-31"}),
        ("CalendarTime", "midnight", at(0)),
        ("CalendarTime", "12 am", at(0)),
        ("CalendarTime", "12pm", at(12)),
        ("CalendarTime", "14:45", at(14, 45)),
        ("CalendarTimeRange", "11am-1pm", {"start": at(11), "end": at(13)}),
        ("CalendarTimeRange", "11-1pm", {"start": at(11), "end": at(13)}),
        ("CalendarTimeRange", "from 3 to 4:30 pm", {"start": at(15), "end": at(16, 30)}),
        ("CalendarTimeRange", "7pm", {"start": at(19)}),
        (
            "CalendarDayRange",
            "monday to friday",
            {"start": {"text": "monday"}, "end": {"text": "friday"}},
        ),
        ("CalendarDayRange", "2027-01-31", {"start": {"text": "2027-01-31"}}),
    ],
)
def test_a_text_of_an_entity_has_its_value(kind: str, text: str, value: object) -> None:
    """A text that names an entity has the value of the entity."""
    assert ENTITY_READERS[kind](text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("Ordinal", "three"),
        ("Ordinal", "th"),
        ("Ordinal", "the"),
        ("Cardinal", "many"),
        ("Cardinal", "twenty twenty one"),
        ("Percentage", "half full"),
        ("CalendarDate", "monday 2pm"),
        ("CalendarDate", "the red one"),
        ("CalendarTime", "25:00"),
        ("CalendarTime", "13pm"),
        ("CalendarTime", "monday"),
        ("CalendarTimeRange", "9am-10am-11am"),
        ("CalendarTimeRange", "monday to friday"),
        ("CalendarDayRange", "monday to never"),
        ("CalendarDate", ""),
        ("Cardinal", ""),
    ],
)
def test_another_text_is_no_entity(kind: str, text: str) -> None:
    """A text that names no entity of the type is refused, also if it holds one."""
    assert ENTITY_READERS[kind](text) is UNDEFINED
