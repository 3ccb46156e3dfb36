"""Built-in entity types: ordinals, cardinals, percentages, dates and times of English text.

A reader returns the value of a text, or `UNDEFINED` where the text is no such entity. A date stays
text here, because its value depends on the present day.
"""

from __future__ import annotations

import re
from typing import Final

from uncaged_dispatcher.grammar.occurrences import EntityReaders
from uncaged_dispatcher.grammar.syntax import UNDEFINED

ONES: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBERS: Final = {word: number for number, word in enumerate(ONES)} | {
    word: 10 * number for number, word in enumerate(TENS, 2)
}
SCALES: Final = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
ORDINALS: Final = {
    "first": "one",
    "second": "two",
    "third": "three",
    "fifth": "five",
    "eighth": "eight",
    "ninth": "nine",
    "twelfth": "twelve",
}
"""Ordinals that are not their number with `th`."""
DAYS: Final = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
MONTHS: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
NTH: Final = r"(?:[12]?\d|3[01])(?:st|nd|rd|th)?"
DATE: Final = rf"""(?:
        today | tonight | tomorrow | yesterday | (?:the\ )?day\ (?:after\ tomorrow|before\ yesterday)
      | (?:(?:on|this|next|last|coming)\ )?{DAYS}(?:\ (?:next\ week|morning|afternoon|evening))?
      | (?:this|next|last)\ (?:week(?:end)?|month|year)
      | (?:in\ )?(?:an?|\d+|{"|".join(ONES[1:])})\ (?:day|week|month|year)s?(?:\ ago|\ from\ now)?
      | (?:{DAYS},?\ )?{MONTHS}\ {NTH}(?:,?\ \d{{4}})?
      | (?:{DAYS},?\ )?(?:the\ )?{NTH}(?:\ of)?\ {MONTHS}(?:,?\ \d{{4}})?
      | the\ {NTH}
      | \d{{4}}-\d\d?-\d\d? | \d\d?[/.]\d\d?(?:[/.](?:\d{{4}}|\d\d))?
)"""
TIME: Final = (
    r"(?:at )?(?:(?P<word>noon|midday|midnight)"
    r"|(?P<hours>[01]?\d|2[0-3])(?::(?P<minutes>[0-5]\d))?(?: ?(?P<half>[ap])\.?m\.?| ?o'?clock)?)"
)
RANGE_WORDS: Final = r"\s*(?:-|–|—|\bto\b|\btill\b|\buntil\b|\band\b)\s*"
RANGE_LEAD: Final = r"(?:from|between)\s+"
FLAGS: Final = re.IGNORECASE | re.ASCII
# Patterns are compiled at their first use: the one of dates takes 15 ms.


def cardinal(text: str) -> object:
    """Return the number of `12`, `1,200` or `twenty five`."""
    text = text.strip().lower()
    if re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15}", text):
        return int(text.replace(",", ""))
    total = part = 0
    words = [word for word in re.split(r"[\s-]+", text) if word != "and"]
    for word in words:
        if word in NUMBERS:
            number = NUMBERS[word]
            if (part % 10 and number < 10) or (part % 100 and number >= 10):
                return UNDEFINED
            part += number
        elif word == "hundred":
            part = (part or 1) * 100
        elif word in SCALES:
            total += (part or 1) * SCALES[word]
            part = 0
        else:
            return UNDEFINED
    return total + part if words else UNDEFINED


def ordinal(text: str) -> object:
    """Return the number of `3rd`, `third` or `twenty-third`."""
    text = text.strip().lower()
    if found := re.fullmatch(r"([0-9]{1,15})(?:st|nd|rd|th)", text):
        return int(found[1])
    last = re.split(r"[\s-]", text)[-1]
    start = text.removesuffix(last)
    if last in ORDINALS:
        return cardinal(start + ORDINALS[last])
    if last.endswith("ieth"):
        return cardinal(start + last[:-4] + "y")
    return cardinal(start + last[:-2]) if last.endswith("th") else UNDEFINED


def percentage(text: str) -> object:
    """Return the number of `35%`, `35 percent` or `35`."""
    text = re.sub(r"\s*(?:%|per ?cent)\Z", "", text.strip(), flags=re.IGNORECASE)
    if re.fullmatch(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?", text):
        value = float(text)
        return int(value) if value.is_integer() else value
    return cardinal(text)


def date(text: str) -> object:
    """Return the text of a date."""
    words = " ".join(text.split())
    return {"text": text} if re.fullmatch(DATE, words, FLAGS | re.VERBOSE) else UNDEFINED


def time(text: str) -> object:
    """Return hours of the day and minutes of `noon`, `2pm` or `14:30`."""
    found = re.fullmatch(TIME, " ".join(text.split()), FLAGS)
    if found is None:
        return UNDEFINED
    if found["word"]:
        return {"hours24": 0 if found["word"].lower() == "midnight" else 12, "minutes": 0}
    hours = int(found["hours"])
    if found["half"]:
        if not 1 <= hours <= 12:
            return UNDEFINED
        hours = hours % 12 + (12 if found["half"].lower() == "p" else 0)
    return {"hours24": hours, "minutes": int(found["minutes"] or 0)}


def time_range(text: str) -> object:
    """Return start and end of `9am-10am` or `1 to 2 pm`; a time alone is a range without end."""
    parts = _range_parts(text)
    if len(parts) > 2:
        return UNDEFINED
    end = time(parts[-1])
    if end is UNDEFINED or len(parts) == 1:
        return end if end is UNDEFINED else {"start": end}
    start = time(parts[0])
    if parts[0].isdigit() and (half := re.search(r"[ap]\.?m\.?\Z", parts[1], re.IGNORECASE)):
        start = time(parts[0] + half[0])
        later = _minutes(start) > _minutes(end)
        start = time(parts[0] + ("am" if half[0][0] in "pP" else "pm")) if later else start
    return UNDEFINED if start is UNDEFINED else {"start": start, "end": end}


def _range_parts(text: str) -> list[str]:
    """Return the texts on both sides of the word between them."""
    words = re.sub(rf"\A{RANGE_LEAD}", "", " ".join(text.split()), flags=FLAGS)
    return re.split(RANGE_WORDS, words, flags=FLAGS)


def _minutes(value: object) -> int:
    """Return the minute of the day of a time."""
    return value["hours24"] * 60 + value["minutes"] if isinstance(value, dict) else -1


def day_range(text: str) -> object:
    """Return start and end of `monday to friday`; a date alone is a range without end."""
    parts = _range_parts(text)
    dates = [date(part) for part in parts]
    if len(dates) > 2 or UNDEFINED in dates:
        single = date(text)
        return single if single is UNDEFINED else {"start": single}
    return dict(zip(("start", "end"), dates, strict=False))


ENTITY_READERS: Final[EntityReaders] = {
    "Ordinal": ordinal,
    "Cardinal": cardinal,
    "Percentage": percentage,
    "CalendarDate": date,
    "CalendarTime": time,
    "CalendarTimeRange": time_range,
    "CalendarDayRange": day_range,
}
