"""Lists of a shared store's threads: pages, counts, and those that workers drive or will drive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from uncaged_bundles.ids import BundleHash, ThreadId

from ..state.observe import ThreadSummary
from ..state.pages import PagePlace, ThreadCounts, ThreadPage
from ..stores.protocol import ThreadEntry
from ..threads.starting import Chance
from .copies import ThreadCopies
from .dispatch import SharedStore
from .waiting import WaitReasons

if TYPE_CHECKING:
    from ..threads.filtering import ThreadFilter

PAGE = 100
"""Threads that are looked at together for a page of a list."""
MOST_DRIVEN = 1000


class SharedLists:
    """Lists of one shared store, read through the copies of this process."""

    def __init__(self, backend: SharedStore, copies: ThreadCopies, chance: Chance) -> None:
        self._backend = backend
        self._copies = copies
        self._chance = chance

    def page(
        self,
        wanted: ThreadFilter | None = None,
        *,
        before: str | None = None,
        limit: int = 50,
        most_read: int | None = None,
    ) -> ThreadPage:
        """List the first *limit* threads that fit, those started last first.

        Args: as `Engine.page`; most_read: after so many threads that do not fit, the page ends.
        """
        from ..threads.filtering import ThreadFilter

        chosen, now_ms = wanted or ThreadFilter(), self._chance.clock_ms()
        candidates = chosen.candidates()
        after = None if before is None else _entry_at(PagePlace.of(before))
        found: list[ThreadSummary] = []
        looked_at = 0
        while len(found) < limit and (most_read is None or looked_at < most_read):
            entries = self._backend.threads.page(
                after=after,
                limit=min(PAGE, max(limit, 10)),
                newest_first=True,
                among=candidates,
            )
            if not entries:
                return ThreadPage(threads=tuple(found), before=None)
            for entry, summary in zip(entries, self._copies.summaries(entries), strict=True):
                looked_at += 1
                after = entry
                if chosen.fits(summary, now_ms):
                    found.append(summary)
                    if len(found) == limit:
                        break
        return ThreadPage(threads=tuple(found), before=None if after is None else _place_of(after))

    def first_to_last(self, wanted: ThreadFilter) -> Iterator[ThreadSummary]:
        """Yield the threads that fit, those started first first; a copy that is made of one is
        removed before the next one.
        """
        after: ThreadEntry | None = None
        among, now_ms = wanted.candidates(), self._chance.clock_ms()
        while entries := self._backend.threads.page(after=after, limit=PAGE, among=among):
            after = entries[-1]
            for entry in entries:
                with self._copies.briefly(entry):
                    summary = next(self._copies.summaries([entry]))
                    if wanted.fits(summary, now_ms):
                        yield summary

    def newest(self, limit: int) -> list[ThreadSummary]:
        """List those of the newest *limit* threads that no other thread started."""
        found: list[ThreadSummary] = []
        after: ThreadEntry | None = None
        while limit > 0:
            size = min(PAGE, limit)
            entries = self._backend.threads.page(after=after, limit=size, newest_first=True)
            if not entries:
                break
            limit, after = limit - len(entries), entries[-1]
            found += self._copies.summaries([one for one in entries if not one.by_thread])
        return found

    def running(self) -> list[ThreadSummary]:
        """List the threads that workers drive or will drive, those submitted last first."""
        entries = [one.entry for one in self._backend.queue.driven(limit=MOST_DRIVEN)]
        return [one for one in self._copies.summaries(entries) if one.status == "running"]

    def counts(self, *, most_read: int) -> ThreadCounts:
        """Count threads by status: the newest *most_read* of them; about so many are older."""
        statuses: Counter[str] = Counter()
        after: ThreadEntry | None = None
        while statuses.total() < most_read:
            entries = self._backend.threads.page(after=after, limit=PAGE, newest_first=True)
            if not entries:
                return ThreadCounts(statuses=statuses, unread=0)
            statuses.update(self._copies.statuses(entries))
            after = entries[-1]
        # places have gaps, and imported threads have none
        return ThreadCounts(statuses=statuses, unread=0 if after is None else max(0, after.place))

    def working(
        self,
        bundles: Collection[BundleHash] | None = None,
        threads: Collection[ThreadId] | None = None,
    ) -> list[dict[str, Any]]:
        """Return ``{hash, worker, threadId, doing, sinceMs, queued}`` for each of these threads.

        worker: its name; empty for a thread that waits for one.
        """
        from ..threads.rows import RowCount

        found = []
        reasons = WaitReasons(self._backend)
        driven = [
            one
            for one in self._backend.queue.driven(limit=MOST_DRIVEN)
            if (threads is None or one.entry.id in threads)
            and (bundles is None or one.entry.bundle in bundles)
        ]
        records = self._copies.records([one.entry for one in driven if one.worker])
        for one in driven:
            rows = RowCount()
            if one.worker:
                if one.entry.id not in records:
                    continue  # `threads` lists it; it hides no other
                for record in records[one.entry.id]:
                    rows.add(record)
            step = rows.open_step()
            doing = None if step is None else step["label"]
            found.append(
                {
                    "hash": one.entry.bundle,
                    "worker": one.worker,
                    "threadId": one.entry.id,
                    "doing": doing if one.worker else reasons.of(one.kind, one.other_version),
                    "sinceMs": 0 if step is None else step["startedMs"],
                    "queued": 0,
                }
            )
        return found

    def wait_reason(self, thread: ThreadId) -> str:
        """Return why a thread waits, as a sentence without a subject; empty if it does not."""
        queue = self._backend.queue
        kind = queue.waiting_kind(thread)
        return "" if kind is None else WaitReasons(self._backend).of(kind)


def _place_of(entry: ThreadEntry) -> str:
    return str(PagePlace(start=entry.place, thread=entry.id, hash=entry.bundle))


def _entry_at(place: PagePlace) -> ThreadEntry:
    return ThreadEntry(bundle=BundleHash(place.hash), id=place.thread, place=place.start)
