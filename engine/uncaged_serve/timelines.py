"""Timelines of threads as they were read last, so that a page of rows, the next page and the events
after them read a journal once. An entry is valid only for the same state of the journal's file.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass
from uncaged_engine.api import Engine
from uncaged_engine.services.documents import RowCount, lean_records
from uncaged_engine.services.journal import plain_of
from uncaged_engine.services.thread_pages import stamp_of_journal

MOST_ENTRIES = 8
MOST_BYTES = 32 << 20
"""The largest journal whose rows are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTimeline:
    """Rows of a thread up to a place of its journal. count: their state at that place; take a
    copy.
    """

    rows: Sequence[Mapping[str, object]]
    count: RowCount
    place: int


_entries: OrderedDict[str, tuple[object, ReadTimeline]] = OrderedDict()
_lock = threading.Lock()


def read_timeline(engine: Engine, place: tuple[BundleHash, ThreadId, Path]) -> ReadTimeline:
    """Return the timeline of a thread.

    Raises:
        DamagedError: not even its start can be read. NotFoundError: it was removed.
    """
    name = str(plain_of(place[2]))
    stamp = stamp_of_journal(name)
    with _lock:
        known = _entries.get(name)
        if known is not None and stamp is not None and known[0] == stamp:
            _entries.move_to_end(name)
            return known[1]
    records, end = lean_records(engine.store, place)
    count = RowCount()
    rows = [row for record in records if (row := count.add(record)) is not None]
    found = ReadTimeline(rows=rows, count=count, place=end)
    if stamp is not None and end <= MOST_BYTES:
        with _lock:
            _entries[name] = (stamp, found)
            _entries.move_to_end(name)
            while len(_entries) > MOST_ENTRIES:
                _entries.popitem(last=False)
    return found
