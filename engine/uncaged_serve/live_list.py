"""Live list of threads: each client gets the document of a thread that appeared, changed its
status, or does something else now.

Rule 1: a running thread has one follower for all clients (`hub`), and only while there are clients.
Rule 2: a client gets the last document of a thread, not each. One that leaves too many unread is
dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.api import Engine
from uncaged_engine.services.journal import is_live
from uncaged_engine.services.thread_pages import read_thread

from .hub import EventHub, TakenUp, hub_of
from .live_thread import LiveThread, listed_document
from .thread_feed import Listener, ThreadFeed, Told

MOST_WAITING = 5000
"""Threads whose documents may wait for a client."""
MOST_FOLLOWED = 500
"""Threads that are followed; of others a client sees that they began and how they ended."""
INTERVAL_S = 0.1
"""Shortest time between two batches for a client."""

Change = tuple[str, Mapping[str, object]]


@dataclass(slots=True, eq=False, kw_only=True)
class _Followed:
    """A thread with its feed. live: None until it was read; what was heard by then is `early`."""

    feed: ThreadFeed
    listener: Listener
    live: LiveThread | None = None
    early: list[Told] = field(default_factory=list)


class ListChanges:
    """Changes of the list for one client: an asynchronous iterator of kind and document.

    Kinds: `thread`; `gone`, a removed one; `reload`, if any thread may have changed.
    was_too_slow: it has ended because the client left too much unread.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Change] = {}
        self._arrived = asyncio.Event()
        self.was_too_slow = False

    def put(self, thread: str, change: Change) -> None:
        """Queue a change, in place of an earlier one of the same thread."""
        if self.was_too_slow:
            return
        self._waiting[thread] = change
        if len(self._waiting) > MOST_WAITING:
            self.was_too_slow = True
            self._waiting.clear()
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[Change]:
        while not self.was_too_slow:
            await self._arrived.wait()
            self._arrived.clear()
            batch, self._waiting = self._waiting, {}
            for change in batch.values():
                yield change
            if not self.was_too_slow:
                await asyncio.sleep(INTERVAL_S)


class LiveList:
    """Followed threads of one store. It belongs to the event loop in which it was made."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._hub: EventHub = hub_of(engine)
        self._clients: list[ListChanges] = []
        self._followed: dict[ThreadId, _Followed] = {}
        self._beginning: set[ThreadId] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[ListChanges]:
        """Subscribe to the changes from now on."""
        client = ListChanges()
        self._clients.append(client)
        if len(self._clients) == 1:
            self._hub.taken_up.append(self._see)
            self._hub.watch()
            self._spawn(self._begin())
        try:
            yield client
        finally:
            self._clients.remove(client)
            if not self._clients:
                self._end()

    async def _begin(self) -> None:
        for one in await asyncio.to_thread(self._engine.running):
            self._see([(one.hash, one.thread_id)])

    def _end(self) -> None:
        self._hub.taken_up.remove(self._see)
        for thread in tuple(self._followed):
            self._leave(thread)

    def _see(self, taken_up: list[TakenUp] | None) -> None:
        if taken_up is None:
            self._publish("", ("reload", {}))
        for bundle, thread in taken_up or ():
            if thread not in self._followed and thread not in self._beginning:
                self._beginning.add(thread)
                self._spawn(self._follow(bundle, thread))

    async def _follow(self, bundle: BundleHash, thread: ThreadId) -> None:
        try:
            await self._read(bundle, thread)
            if not self._clients or len(self._followed) >= MOST_FOLLOWED:
                return
            listener = partial(self._hear, thread)
            feed = self._hub.listen(bundle, thread, listener)
            followed = self._followed[thread] = _Followed(feed=feed, listener=listener)
            status = await feed.reached()
            # after the feed has begun: what happens meanwhile is heard
            followed.live = await asyncio.to_thread(LiveThread.read, self._engine, bundle, thread)
            if status.body["status"] != "running" and not is_live(feed.path):
                await self._settle(bundle, thread)
                return
            self._publish(thread, ("thread", followed.live.document()))
            for told in followed.early:
                self._hear(thread, told)
        except (UncagedError, OSError):
            self._publish(thread, ("gone", {"threadId": thread}))
            self._leave(thread)
        finally:
            self._beginning.discard(thread)

    def _hear(self, thread: ThreadId, told: Told) -> None:
        followed = self._followed.get(thread)
        if followed is None:
            return
        if followed.live is None:
            followed.early.append(told)
        elif isinstance(told, UncagedError):
            self._leave(thread)
            self._publish(thread, ("gone", {"threadId": thread}))
        elif told.kind == "status" and told.body["status"] != "running":
            self._spawn(self._settle(followed.live.summary.hash, thread))
        else:
            followed.live.apply(told)
            self._publish(thread, ("thread", followed.live.document()))

    async def _settle(self, bundle: BundleHash, thread: ThreadId) -> None:
        """Publish how a thread stopped, and leave it."""
        self._leave(thread)
        await self._read(bundle, thread)

    async def _read(self, bundle: BundleHash, thread: ThreadId) -> None:
        try:
            summary = await asyncio.to_thread(read_thread, self._engine.store, bundle, thread)
        except (UncagedError, OSError):
            self._publish(thread, ("gone", {"threadId": thread}))
        else:
            self._publish(thread, ("thread", listed_document(summary, None)))

    def _leave(self, thread: ThreadId) -> None:
        followed = self._followed.pop(thread, None)
        if followed is not None:
            self._hub.leave(followed.feed, followed.listener)

    def _publish(self, thread: str, change: Change) -> None:
        for client in self._clients:
            client.put(thread, change)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the loop keeps a weak reference
        task.add_done_callback(self._tasks.discard)


_LISTS: WeakKeyDictionary[Engine, LiveList] = WeakKeyDictionary()


def live_list_of(engine: Engine) -> LiveList:
    """Return the list of an engine, which is made at the first call, in the event loop."""
    found = _LISTS.get(engine)
    if found is None:
        found = _LISTS[engine] = LiveList(engine)
    return found
