"""Live list of the threads of a shared store, for any number of clients, as `live_list` is for a
directory.

While there are clients, a few queries a second find the threads that were submitted, those that
workers have, and how far they have come. Lines are read only of threads that went on. An outage of
the store delays changes and loses none: the next look compares with the last one that worked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.services.shared_engine import SharedEngine
from uncaged_engine.services.threads import records_between

from .live_list import Change, ListChanges
from .live_thread import LiveThread, listed_document

LOOK_S = 1.0
MOST_WATCHED = 1000
"""Threads that are watched; of others a client sees that they began."""
LEFT_S = 15.0
"""How long a thread without a worker is watched: a look names those of seconds before, too."""


@dataclass(slots=True, eq=False, kw_only=True)
class _Watched:
    """A thread that a worker has, or had a little while ago.

    size_bytes, worker: as they were at the last look; -1 before the first. live: as far as it was
    read; None while no worker has it. shown: its last document.
    """

    bundle: BundleHash
    thread: ThreadId
    size_bytes: int = -1
    worker: str | None = None
    left_s: float = field(default_factory=time.monotonic)
    live: LiveThread | None = None
    shown: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What one look found. until_ms: where the next one goes on."""

    until_ms: int
    watched: dict[ThreadId, _Watched]
    changes: list[tuple[str, Change]]


class SharedLiveList:
    """Watched threads of one store. It belongs to the event loop in which it was made."""

    def __init__(self, engine: SharedEngine) -> None:
        self._engine = engine
        self._clients: list[ListChanges] = []
        self._watched: dict[ThreadId, _Watched] = {}
        self._looking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[ListChanges]:
        """Subscribe to the changes from now on, and to the present documents of running threads.

        Raises:
            UncagedError: the store is away.
        """
        since_ms = (await asyncio.to_thread(self._engine.submitted, None)).until_ms
        client = ListChanges()
        self._clients.append(client)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_on(since_ms))
        for one in self._watched.values():
            if one.shown is not None:
                client.put(one.thread, ("thread", one.shown))
        try:
            yield client
        finally:
            self._clients.remove(client)
            if not self._clients and self._looking is not None:
                self._looking.cancel()
                self._looking = None
                self._watched = {}

    async def _look_on(self, since_ms: int) -> None:
        running: Sequence[tuple[BundleHash, ThreadId]] | None = None
        while True:
            try:
                if running is None:
                    found = await asyncio.to_thread(self._engine.running)
                    running = [(one.hash, one.thread_id) for one in found]
                    self._watched = {
                        thread: _Watched(bundle=bundle, thread=thread) for bundle, thread in running
                    }
                look = await asyncio.to_thread(self._look, since_ms, dict(self._watched))
            except (UncagedError, OSError):
                pass  # the store is away
            else:
                since_ms, self._watched = look.until_ms, look.watched
                for thread, change in look.changes:
                    for client in self._clients:
                        client.put(thread, change)
            await asyncio.sleep(LOOK_S)

    def _look(self, since_ms: int, watched: dict[ThreadId, _Watched]) -> _Look:
        engine, changes = self._engine, list[tuple[str, Change]]()
        submitted = engine.submitted(since_ms)
        if not submitted.complete:
            changes.append(("", ("reload", {})))
        for entry in submitted.entries:
            if entry.id not in watched and len(watched) < MOST_WATCHED:
                watched[entry.id] = _Watched(bundle=entry.bundle, thread=entry.id)
        sizes = engine.sizes([(one.bundle, one.thread) for one in watched.values()])
        workers = engine.pending(list(watched))
        now_s = time.monotonic()
        for one in tuple(watched.values()):
            size_bytes, worker = sizes.get(one.thread), workers.get(one.thread)
            if size_bytes is None:
                del watched[one.thread]
                changes.append((one.thread, ("gone", {"threadId": one.thread})))
                continue
            if worker is not None:
                one.left_s = now_s
            elif now_s - one.left_s > LEFT_S:
                del watched[one.thread]
            if (size_bytes, worker) != (one.size_bytes, one.worker):
                document = self._document(one, size_bytes, worker)
                if document != one.shown:
                    one.shown = document
                    changes.append((one.thread, ("thread", document)))
        return _Look(until_ms=submitted.until_ms, watched=watched, changes=changes)

    def _document(self, one: _Watched, size_bytes: int, worker: str | None) -> Mapping[str, object]:
        """Read what a thread did since the last look."""
        engine = self._engine
        place = engine.store.locate_thread(one.thread)  # first: what is read below is there then
        if not engine.is_driven(place):
            one.live = None
            document = listed_document(engine.summary(one.bundle, one.thread), None)
        else:
            if one.live is None or one.worker != worker:
                one.live = LiveThread.read(engine, one.bundle, one.thread, size_bytes)
            else:
                for event in records_between(engine.store, place[2], one.size_bytes, size_bytes):
                    one.live.apply(event)
            document = one.live.document()
        one.size_bytes, one.worker = size_bytes, worker
        return document


_LISTS: WeakKeyDictionary[SharedEngine, SharedLiveList] = WeakKeyDictionary()


def shared_list_of(engine: SharedEngine) -> SharedLiveList:
    """Return the list of an engine, which is made at the first call, in the event loop."""
    found = _LISTS.get(engine)
    if found is None:
        found = _LISTS[engine] = SharedLiveList(engine)
    return found
