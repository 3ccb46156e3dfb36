"""Feed of one thread, from its reader in a system thread to any number of clients in the event
loop.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, TypeAlias

from uncaged_bundles.errors import EngineBug, StorageError, UncagedError, UsageError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.api import Engine, Event
from uncaged_engine.services.thread_pages import stamp_of_journal
from uncaged_engine.services.threads import Cancel, records_between

MOST_WAITING = 10_000
MOST_WAITING_BYTES = 8 << 20
"""What may wait for a client: events, and bytes of the journal."""
MOST_UNTAKEN = 1000
"""Events that may wait for the event loop; the reader waits then."""
PART = 500
AWAY_S = 1.0
"""Time until the next try to read from a shared store that is away."""

Told: TypeAlias = Event | UncagedError
Listener: TypeAlias = Callable[[Told], None]


class ClientEvents:
    """Events for one client, in order: an asynchronous iterator.

    was_too_slow: it has ended because the client left too much unread.
    """

    def __init__(self, feed: ThreadFeed, after: int) -> None:
        self._feed = feed
        self._after = after
        self._waiting: deque[Event] = deque()
        self._given_place = 0
        self._last_place = 0
        self._problem: UncagedError | None = None
        self._arrived = asyncio.Event()
        self.was_too_slow = False

    def put(self, told: Told) -> None:
        """Queue an event, or the error that ends the stream."""
        if isinstance(told, UncagedError):
            self._problem = told
        elif not self.was_too_slow:
            self._last_place = max(told.place, self._last_place)
            self._waiting.append(told)
            waiting_bytes = self._last_place - self._given_place
            if len(self._waiting) > MOST_WAITING or waiting_bytes > MOST_WAITING_BYTES:
                self.was_too_slow = True
                self._waiting.clear()
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        async for event in self._former():
            yield event
        while True:
            while self._waiting:
                event = self._waiting.popleft()
                self._given_place = max(event.place, self._given_place)
                yield event
            if self._problem is not None:
                raise self._problem
            if self.was_too_slow:
                return
            self._arrived.clear()
            await self._arrived.wait()

    async def _former(self) -> AsyncIterator[Event]:
        """Yield the records up to the place that the feed has reached, then its present status."""
        status = await self._feed.reached()
        # in one turn of the loop: what the queue has by now is in the journal's part, too
        self._waiting.clear()
        self._given_place = self._last_place = status.place
        self.was_too_slow = False
        if self._after > status.place:
            raise UsageError(f"place {self._after} is after the end of this thread's journal")
        records = records_between(
            self._feed.engine.store, self._feed.path, self._after, status.place
        )
        while part := await asyncio.to_thread(_next_of, records):
            for event in part:
                if self.was_too_slow:
                    return
                yield event
        yield status


class ThreadFeed:
    """Events of one thread, from its reader to the clients.

    The reader is a system thread, which lives while a worker drives the thread. If a shared store
    is away for long, the feed goes on once it is back.
    """

    def __init__(self, engine: Engine, bundle: BundleHash, thread: ThreadId) -> None:
        self.engine = engine
        self.bundle = bundle
        self.thread = thread
        self.path = engine.store.data_path(bundle, thread)
        self.listeners: list[Listener] = []
        self._status: Mapping[str, Any] = {}
        self._place = 0
        self._known = asyncio.Event()
        self._problem: UncagedError | None = None
        self._woken = asyncio.Event()
        self._stamp: object = None
        self._cancel = Cancel()
        self._read: queue.Queue[Event] = queue.Queue(MOST_UNTAKEN)
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._ended)

    async def reached(self) -> Event:
        """Return the present status, whose place is how far the feed has come."""
        await self._known.wait()
        if self._problem is not None:
            raise self._problem
        return Event(kind="status", body=self._status, place=self._place)

    def wake(self) -> None:
        """Look at the journal again: a process took it up, or it has changed."""
        self._woken.set()

    def look(self) -> None:
        """Wake if the journal of a stopped thread is not as it was when it was read."""
        if self._stamp is not None and self._stamp != stamp_of_journal(str(self.path)):
            self.wake()

    @property
    def has_stopped(self) -> bool:
        """Whether nothing is read until `wake`."""
        return self._stamp is not None

    def look_at_size(self, size_bytes: int | None) -> None:
        """Wake if a stopped thread's journal has another size than what was read; None: it was
        removed.
        """
        if self.has_stopped and size_bytes != self._place:
            self.wake()

    @property
    def has_failed(self) -> bool:
        return self._problem is not None

    def close(self) -> None:
        self._cancel.request()
        self._task.cancel()

    async def _run(self) -> None:
        after: int | None = None
        try:
            while True:
                self._woken.clear()
                self._stamp = None
                stamp = stamp_of_journal(str(self.path))
                try:
                    await self._follow(after)
                    after, self._stamp = self._place, stamp or ""
                    await self._woken.wait()
                    place = (self.bundle, self.thread, self.path)
                    is_driven = await asyncio.to_thread(self.engine.is_driven, place)
                except StorageError:
                    if not (self.engine.is_shared and self._known.is_set()):
                        raise
                    after, self._stamp = self._place, None
                    await asyncio.sleep(AWAY_S)
                    continue
                if is_driven:
                    body = {"status": "running", "message": ""}
                    self._publish(Event(kind="status", body=body, place=self._place))
        except UncagedError as exc:
            self._fail(exc)
        except OSError as exc:
            self._fail(StorageError(f"cannot read thread {self.thread}: {exc.strerror or exc}"))

    async def _follow(self, after: int | None) -> None:
        """Read until the thread stops."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        threading.Thread(
            target=self._pump, args=(loop, ended, after), name=f"follow-{self.thread}", daemon=True
        ).start()
        await ended

    def _pump(
        self, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None], after: int | None
    ) -> None:
        """Hand events to the loop until the thread stops; waits while the loop has many to take."""
        problem: Exception | None = None
        try:
            for event in self.engine.follow(self.thread, after=after, cancel=self._cancel):
                self._read.put(event)
                loop.call_soon_threadsafe(self._take)
        except Exception as exc:  # the thread that awaits it gets it
            problem = exc
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_settle, ended, problem)

    def _take(self) -> None:
        self._publish(self._read.get_nowait())  # one call for each that was put

    def _publish(self, event: Event) -> None:
        self._place = max(self._place, event.place)
        if event.kind == "status":
            is_known, self._status = self._status == event.body, event.body
            self._known.set()
            if is_known:
                return
        for listener in tuple(self.listeners):
            listener(event)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Report an exception that nothing expects to the followers, and to the loop."""
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            self._fail(EngineBug(f"thread {self.thread} cannot be followed: {problem!r}"))
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"reader of thread {self.thread}", "exception": problem}
            )

    def _fail(self, problem: UncagedError) -> None:
        self._problem = problem
        self._known.set()
        for listener in tuple(self.listeners):
            listener(problem)


def _settle(ended: asyncio.Future[None], problem: Exception | None) -> None:
    if ended.done():  # cancelled
        return
    if problem is None:
        ended.set_result(None)
    else:
        ended.set_exception(problem)


def _next_of(records: Iterator[Event]) -> list[Event]:
    return list(islice(records, PART))
