"""Pages of a store's threads by its index: of a page's threads only those are read whose journal
has changed, or alone does not decide their status.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.records import dataclass, field, replace
from uncaged_bundles.storage.order import START, OrderPlace
from uncaged_bundles.storage.store import DATA_SUFFIX, Store

from ..journal import trouble
from ..state import index, index_pages
from ..state.index_pages import PagedThread
from ..state.observe import ThreadSummary, is_imported, read_summary
from ..state.pages import PagePlace, ThreadCounts, ThreadPage, word
from ..stores.endings import UNSUCCESSFUL
from . import listing
from .filtering import ThreadFilter
from .names import locked_journals, stamp_of_journal

PART = 100
MOST = 2000
"""Candidates of a query: the first one is small, as most pages need no second."""


def page(
    store: Store,
    wanted: ThreadFilter,
    *,
    before: str | None = None,
    limit: int = 50,
    now_ms: int,
    most_read: int | None = None,
) -> ThreadPage:
    """Return the first threads that fit.

    Args:
        before: from the page before. most_read: after so many journals the page ends early.
    Raises:
        UsageError: *before* is no place in a list.
    """
    at = None if before is None else PagePlace.of(before)
    reading = _Reading.begin(store)
    if reading is None:
        return _without_index(store, wanted, at, limit, now_ms)
    clause, values = wanted.clause()
    found: list[ThreadSummary] = []
    size = max(PART, limit + 1)
    while True:
        part = index_pages.candidates(store, clause, values, at, size)
        if part is None:
            return _without_index(store, wanted, at, limit, now_ms)
        for one in part:
            if len(found) == limit or (most_read is not None and reading.reads >= most_read):
                reading.end()
                return ThreadPage(threads=tuple(found), before=None if at is None else str(at))
            summary = reading.summary(one)
            at = one.place
            if summary is not None and wanted.fits(summary, now_ms):
                found.append(summary)
        if len(part) < size:
            reading.end()
            return ThreadPage(threads=tuple(found), before=None)
        size = min(size * 4, MOST)


def count(store: Store, *, most_read: int | None = None) -> ThreadCounts:
    """Count the threads by status.

    Args:
        most_read: of the threads without a kept summary, so many are read.
    """
    reading = _Reading.begin(store)
    unread = (
        None
        if reading is None
        else index_pages.candidates(
            store, "0", (), None, (1 << 62) if most_read is None else most_read
        )
    )
    numbers: Counter[str] = Counter()
    if reading is None or unread is None:
        for one in listing.list_threads(store):
            numbers[word(one)] += 1
        return ThreadCounts(statuses=numbers, unread=0)
    # before they are kept: each is counted once
    rows = index_pages.counts(store) or []
    left = sum(number for status, _, number in rows if status is None) - len(unread)
    for status, has_failed, number in rows:
        if status is not None:
            numbers[UNSUCCESSFUL if has_failed else status] += number
    for candidate in unread:
        if (summary := reading.summary(candidate)) is not None:
            numbers[word(summary)] += 1
    reading.end()
    return ThreadCounts(statuses=numbers, unread=max(0, left))


def complete_index(store: Store, *, part_size: int = 50) -> Iterator[int]:
    """Read the journals that the index lacks, those started last first; yield the size of each part
    that was read and kept. Journals that the index cannot keep are read once.
    """
    at: PagePlace | None = None
    while True:
        reading = _Reading.begin(store)
        part = None if reading is None else index_pages.candidates(store, "0", (), at, part_size)
        if reading is None or not part:
            return
        for one in part:
            reading.summary(one)
        reading.end()
        at = part[-1].place
        yield len(part)


@dataclass(slots=True, kw_only=True)
class _Reading:
    """Summaries for candidates, and what the index learns from them."""

    store: Store
    since: OrderPlace
    locked: frozenset[index.Place]
    notes: frozenset[str]
    reads: int = 0
    fresh: list[tuple[index.Stamp, ThreadSummary, bool]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, store: Store) -> _Reading | None:
        """Bring the index up to date; None if that is not possible."""
        locked = locked_journals(store)  # founds the index
        noted = index.noted(store)
        if noted is None or not noted.is_kept:
            return None
        return cls(store=store, since=noted.place, locked=frozenset(locked), notes=trouble.noted())

    def summary(self, one: PagedThread) -> ThreadSummary | None:
        """Return a candidate's summary, from its row if that still counts; None if it is gone."""
        thread, bundle = one.place.thread, BundleHash(one.place.hash)
        if not bundle:  # started, and not taken up by a worker, as far as the index knows
            path = self.store.journal_of(thread)
            if path is None:
                return None
            bundle = BundleHash(path.parent.name)
            self.gone.append(f"/{thread}")
        found = stamp_of_journal(f"{self.store.logs}/{bundle}/{thread}{DATA_SUFFIX}")
        if found is None:
            self.gone.append(f"{bundle}/{thread}")
            return None
        path_text, stamp = found
        row = one.row
        if (
            row is not None
            and row[1:5] == stamp
            and (bundle, thread) not in self.locked
            and not self._is_noted(path_text)
            and (kept := listing.summary_from(row, bundle, thread)) is not None
        ):
            imported = is_imported(path_text, thread)
            return replace(kept, imported=True, agents=()) if imported else kept
        self.reads += 1
        with suppress(NotFoundError):
            summary, sure = read_summary(self.store, bundle, thread, path_text)
            if sure is not None:
                self.fresh.append((stamp, summary, sure))
            return summary
        return None

    def end(self) -> None:
        """Keep what was read."""
        index.remember(self.store, self.fresh, since=self.since, gone=self.gone)

    def _is_noted(self, path: str) -> bool:
        return bool(self.notes) and trouble.name_of(os.path.realpath(path)) in self.notes


def _without_index(
    store: Store, wanted: ThreadFilter, before: PagePlace | None, limit: int, now_ms: int
) -> ThreadPage:
    """Return the same from a list of all threads."""
    tail = store.noted_since(START)
    started = {} if tail is None else tail.started
    ordered = sorted(
        (
            (started.get(one.thread_id, -1), one.thread_id, one.hash, one)
            for one in listing.list_threads(store)
        ),
        key=lambda item: item[:3],
        reverse=True,
    )
    key = None if before is None else (before.start, before.thread, before.hash)
    fitting = [
        item for item in ordered if (key is None or item[:3] < key) and wanted.fits(item[3], now_ms)
    ]
    shown = fitting[:limit]
    last = PagePlace(start=shown[-1][0], thread=shown[-1][1], hash=shown[-1][2]) if shown else None
    return ThreadPage(
        threads=tuple(item[3] for item in shown),
        before=str(last) if last is not None and len(fitting) > limit else None,
    )
