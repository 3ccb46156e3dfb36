"""Live list of threads: each client gets the document of a thread that appeared, changed its
status, or does something else now.

Rule 1: a running thread has one follower for all clients (`hub`), and only while there are clients.
Rule 2: a client gets the last document of a thread, not each, and none twice in a row. One that
leaves too many unread is dropped.
Rule 3: a thread that is taken up is in the table at once, with its task, which is cancelled when it
leaves the table. A thread leaves before its last state is read, so that a later take-up is seen.
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
from uncaged_engine.api import Engine, Event, ThreadSummary
from uncaged_engine.services.journal import is_live
from uncaged_engine.services.thread_pages import read_thread

from .hub import EventHub, TakenUp, hub_of
from .live_thread import LiveThread, listed_document
from .thread_feed import Listener, ThreadFeed, Told

MOST_WAITING = 5000
"""Threads whose documents may wait for a client."""
MOST_FOLLOWED = 500
"""Threads that are followed; of others a client sees that they began and how they ended."""
LOOK_S = 0.5
"""Interval of the looks at the lock of a thread that cannot be followed yet."""
INTERVAL_S = 0.1
"""Shortest time between two batches for a client."""

Change = tuple[str, Mapping[str, object]]


@dataclass(slots=True, eq=False, kw_only=True)
class _Taken:
    """A thread that a worker took up.

    task: reads it, and begins to follow it. feed, listener: None while it is not followed. live:
    None until it was read; what was heard by then is `early`. shown: its last published document.
    """

    bundle: BundleHash
    thread: ThreadId
    task: asyncio.Task[None] | None = None
    feed: ThreadFeed | None = None
    listener: Listener | None = None
    live: LiveThread | None = None
    early: list[Told] = field(default_factory=list)
    shown: Mapping[str, object] | None = None


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
        self._taken: dict[ThreadId, _Taken] = {}
        self._followed: set[_Taken] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def changes(self) -> AsyncIterator[ListChanges]:
        """Subscribe to the changes from now on, and to the present documents of running threads."""
        client = ListChanges()
        self._clients.append(client)
        if len(self._clients) == 1:
            self._hub.taken_up.append(self._see)
            self._spawn(self._begin())
        for one in self._taken.values():
            if one.shown is not None:
                client.put(one.thread, ("thread", one.shown))
        try:
            yield client
        finally:
            self._clients.remove(client)
            if not self._clients:
                self._end()

    async def _begin(self) -> None:
        await self._hub.watched()  # first: what is taken up after the look below is reported
        while self._clients:
            try:
                running = await asyncio.to_thread(self._engine.running)
            except (UncagedError, OSError):
                await asyncio.sleep(LOOK_S)  # the store is away
                continue
            if self._clients:
                self._see([(one.hash, one.thread_id) for one in running])
            return

    def _end(self) -> None:
        self._hub.taken_up.remove(self._see)
        for one in tuple(self._taken.values()):
            self._leave(one)

    def _see(self, taken_up: list[TakenUp] | None) -> None:
        if taken_up is None:  # it is not known what was taken up meanwhile
            self._publish("", ("reload", {}))
            self._spawn(self._begin())
        for bundle, thread in taken_up or ():
            if thread not in self._taken:
                one = self._taken[thread] = _Taken(bundle=bundle, thread=thread)
                one.task = self._spawn(self._follow(one))

    async def _follow(self, one: _Taken) -> None:
        path = self._engine.store.data_path(one.bundle, one.thread)
        try:
            self._show(one, listed_document(await self._read(one), None))
            while len(self._followed) >= MOST_FOLLOWED:
                if not is_live(path):
                    self._settle(one)
                await asyncio.sleep(LOOK_S)
            self._followed.add(one)
            one.listener = partial(self._hear, one)
            one.feed = self._hub.listen(one.bundle, one.thread, one.listener)
            # the feed of a thread that had stopped notices a little later that it goes on
            while (reached := await one.feed.reached()).body["status"] != "running":
                if not is_live(path):
                    self._settle(one)
                await asyncio.sleep(LOOK_S)
            live = await asyncio.to_thread(
                LiveThread.read, self._engine, one.bundle, one.thread, reached.place
            )
            one.live = live
            for told in one.early:
                if not _is_read(told, reached.place):
                    self._hear(one, told)
            self._show(one, live.document())
        except (UncagedError, OSError):
            self._lose(one)

    def _hear(self, one: _Taken, told: Told) -> None:
        if not self._is_there(one):
            return
        if one.live is None:
            one.early.append(told)
        elif isinstance(told, UncagedError):
            self._lose(one)
        elif told.kind == "status" and told.body["status"] != "running":
            self._settle(one)
        else:
            one.live.apply(told)
            self._show(one, one.live.document())

    def _show(self, one: _Taken, document: Mapping[str, object]) -> None:
        """Publish the document of a thread, unless it is as before or not of this entry's time."""
        if self._is_there(one) and document != one.shown:
            one.shown = document
            self._publish(one.thread, ("thread", document))

    def _settle(self, one: _Taken) -> None:
        """Leave a thread, and publish how it stopped."""
        self._leave(one)
        self._spawn(self._end_of(one))

    async def _end_of(self, one: _Taken) -> None:
        try:
            summary = await self._read(one)
        except (UncagedError, OSError):
            self._lose(one)
            return
        if one.thread in self._taken:
            return  # it was taken up again, which is newer
        document = listed_document(summary, None)
        if document != one.shown:
            self._publish(one.thread, ("thread", document))
        if summary.status == "running" and self._clients:
            self._see([(one.bundle, one.thread)])  # it was taken up again before it was left

    async def _read(self, one: _Taken) -> ThreadSummary:
        return await asyncio.to_thread(read_thread, self._engine.store, one.bundle, one.thread)

    def _lose(self, one: _Taken) -> None:
        """Leave a thread that cannot be read."""
        self._leave(one)
        if one.thread not in self._taken:
            self._publish(one.thread, ("gone", {"threadId": one.thread}))

    def _leave(self, one: _Taken) -> None:
        if self._is_there(one):
            del self._taken[one.thread]
        if one.task is not None:
            one.task.cancel()
        if one.feed is not None and one.listener is not None:
            self._hub.leave(one.feed, one.listener)
            one.feed = one.listener = None
        self._followed.discard(one)

    def _publish(self, thread: str, change: Change) -> None:
        for client in self._clients:
            client.put(thread, change)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)  # the loop keeps a weak reference
        task.add_done_callback(self._tasks.discard)
        return task

    def _is_there(self, one: _Taken) -> bool:
        return self._taken.get(one.thread) is one


def _is_read(told: Told, place: int) -> bool:
    """Whether an event is a record that is before a place of the journal."""
    return isinstance(told, Event) and told.kind == "record" and told.place <= place


_LISTS: WeakKeyDictionary[Engine, LiveList] = WeakKeyDictionary()


def live_list_of(engine: Engine) -> LiveList:
    """Return the list of an engine, which is made at the first call, in the event loop."""
    found = _LISTS.get(engine)
    if found is None:
        found = _LISTS[engine] = LiveList(engine)
    return found
