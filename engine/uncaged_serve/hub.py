"""Event hub of the server: one reader for each followed thread, shared by all clients of it.

A stream of server-sent events is written with it like this, in the server's event loop:

    async with hub_of(engine).thread(thread_id, after=place) as events:
        async for event in events:  # `uncaged_engine.api.Event`; `event.place` is its id
            ...
    # it ends by itself only if `events.was_too_slow`: the client has to connect again with *place*

Rule 1: a worker has one follower for a thread, however many clients there are; it leaves when the
  last of them has left.
Rule 2: the records that a client has not seen are read from the journal, in parts; then comes the
  thread's present status, then what happens. A stream goes on after the thread has stopped, and
  shows it when it is resumed.
Rule 3: nothing waits for a client. One that leaves too much unread is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias
from weakref import WeakKeyDictionary

from uncaged_bundles.errors import StorageError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.order import START, OrderPlace
from uncaged_engine.api import Engine
from uncaged_engine.services.shared_engine import SharedEngine

from .thread_feed import ClientEvents, Listener, ThreadFeed

LINGER_S = 5.0
"""Time that a reader stays for a client that connects again."""
LOOK_S = 0.1
"""Interval of the looks at the order log, while there are clients."""
STAT_S = 1.0
"""The same, at the journals of followed threads that have stopped. Those of a shared store are
looked at together, by one query.
"""

TakenUp: TypeAlias = "tuple[BundleHash, ThreadId]"


class EventHub:
    """Feeds of the threads of one store. It belongs to the event loop in which it was made."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.taken_up: list[Callable[[list[TakenUp] | None], None]] = []
        """Called with the threads that the order log names as taken up since the last look; with
        None if it is another log, so that any thread may have changed.
        """
        self._feeds: dict[ThreadId, ThreadFeed] = {}
        self._watch: asyncio.Task[None] | None = None
        self._is_watching = asyncio.Event()

    @asynccontextmanager
    async def thread(self, text: str, *, after: int = 0) -> AsyncIterator[ClientEvents]:
        """Subscribe to the events of a thread.

        Args:
            text: as for `Engine.thread`. after: the place of the last event that the client has.
        Raises:
            NotFoundError: there is no such thread.
        """
        bundle, thread, _ = await asyncio.to_thread(self.engine.store.locate_thread, text)
        feed = self._feed(bundle, thread)
        events = ClientEvents(feed, after)
        feed.listeners.append(events.put)
        try:
            yield events
        finally:
            self.leave(feed, events.put)

    def listen(self, bundle: BundleHash, thread: ThreadId, listener: Listener) -> ThreadFeed:
        """Add a listener that is called with the events of a thread from now on, or the error that
        ends them.
        """
        feed = self._feed(bundle, thread)
        feed.listeners.append(listener)
        return feed

    def leave(self, feed: ThreadFeed, listener: Listener) -> None:
        """Remove a listener; the last one's feed is closed after a while."""
        feed.listeners.remove(listener)
        if not feed.listeners:
            asyncio.get_running_loop().call_later(LINGER_S, self._close_unused, feed)

    async def watched(self) -> None:
        """Look at the order log as long as there are feeds or listeners; return as soon as all
        take-ups from now on are reported.
        """
        self._begin_watching()
        await self._is_watching.wait()

    def _begin_watching(self) -> None:
        if self._watch is None or self._watch.done():
            self._is_watching = asyncio.Event()
            watching = (
                self._watching_shared(self.engine)
                if isinstance(self.engine, SharedEngine)
                else self._watching(self._is_watching)
            )
            self._watch = asyncio.create_task(watching)

    def _feed(self, bundle: BundleHash, thread: ThreadId) -> ThreadFeed:
        feed = self._feeds.get(thread)
        if feed is None or feed.has_failed:
            feed = self._feeds[thread] = ThreadFeed(self.engine, bundle, thread)
        self._begin_watching()
        return feed

    def _close_unused(self, feed: ThreadFeed) -> None:
        if not feed.listeners:
            feed.close()
            if self._feeds.get(feed.thread) is feed:
                del self._feeds[feed.thread]

    async def _watching_shared(self, engine: SharedEngine) -> None:
        """Look at the sizes of stopped journals of a shared store, as long as there are feeds."""
        while self._feeds:
            await asyncio.sleep(STAT_S)
            stopped = [feed for feed in self._feeds.values() if feed.has_stopped]
            if not stopped:
                continue
            try:
                sizes = await asyncio.to_thread(
                    engine.sizes, [(feed.bundle, feed.thread) for feed in stopped]
                )
            except UncagedError:
                continue  # the store is away
            for feed in stopped:
                feed.look_at_size(sizes.get(feed.thread))

    async def _watching(self, is_watching: asyncio.Event) -> None:
        try:
            place = await self._end_of_log()
        finally:
            is_watching.set()
        loop = asyncio.get_running_loop()
        looked_s = loop.time()
        while self._feeds or self.taken_up:
            await asyncio.sleep(LOOK_S)
            try:
                tail = self.engine.store.noted_since(place)
            except StorageError:
                continue  # the store is away; its feeds report what they meet
            if tail is None:
                place = await self._end_of_log()
            elif tail.place == place:
                if loop.time() - looked_s < STAT_S:
                    continue
            else:
                place = tail.place
            looked_s = loop.time()
            for feed in tuple(self._feeds.values()):
                feed.look()
            if tail is None or tail.taken_up:
                self._report(None if tail is None else list(tail.taken_up))

    async def _end_of_log(self) -> OrderPlace:
        while self._feeds or self.taken_up:
            try:
                tail = await asyncio.to_thread(self.engine.store.noted_since, START)
            except StorageError:
                await asyncio.sleep(LOOK_S)  # the store is away
            else:
                return START if tail is None else tail.place
        return START

    def _report(self, taken_up: list[TakenUp] | None) -> None:
        for _, thread in taken_up or ():
            if (feed := self._feeds.get(thread)) is not None:
                feed.wake()
        for listener in tuple(self.taken_up):
            listener(taken_up)


_HUBS: WeakKeyDictionary[Engine, EventHub] = WeakKeyDictionary()


def hub_of(engine: Engine) -> EventHub:
    """Return the hub of an engine, which is made at the first call, in the event loop."""
    hub = _HUBS.get(engine)
    if hub is None:
        hub = _HUBS[engine] = EventHub(engine)
    return hub
