"""Readers of entities: the values of captured texts by type. A type of the conversation comes
first, then the built-in ones, then those of packs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from ..grammar.entities import cardinal, ordinal, percentage
from .dates import DateReaders
from .quantities import duration, size
from .types import EntityType

Reader = Callable[[str], object]


class Readers(Mapping[str, Reader]):
    """The readers for one sentence. named: types of the conversation's memory."""

    def __init__(
        self,
        declared: Mapping[str, EntityType],
        named: Mapping[str, Reader] | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._declared = declared
        self._named = named or {}
        dates = DateReaders(now)
        self._built_in: Mapping[str, Reader] = {
            "Cardinal": cardinal,
            "Ordinal": ordinal,
            "Percentage": percentage,
            "Size": size,
            "Duration": duration,
            "CalendarDate": dates.date,
            "CalendarTime": dates.time,
            "CalendarTimeRange": dates.time_range,
            "CalendarDayRange": dates.day_range,
        }

    def __getitem__(self, name: str) -> Reader:
        if name in self._named:
            return self._named[name]
        if name in self._built_in:
            return self._built_in[name]
        return self._declared[name].reader()

    def __iter__(self) -> Iterator[str]:
        yield from {**self._named, **self._built_in, **self._declared}

    def __len__(self) -> int:
        return len({**self._named, **self._built_in, **self._declared})
