"""The live list of threads: summaries kept up to date from events, and followed threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from testbed.bundles import COUNT, granted, place_script, script_of, source
from testbed.processes import end_workers
from uncaged_bundles.errors import StorageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.order import START, OrderPlace, OrderTail
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine, Event, ThreadSummary
from uncaged_engine.services.threads import records_between
from uncaged_serve import live_list
from uncaged_serve.hub import hub_of
from uncaged_serve.live_list import ListChanges, LiveList
from uncaged_serve.live_thread import LiveThread

SLEEPER = source("sleeper", "    yield {'null': {'sleep_s': 600}}\n")
USAGE = {"inputTokens": 10, "outputTokens": 1, "cost": 0.5}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    root = tmp_path_factory.mktemp("live") / "store"
    engine = Engine(Store.open(root))
    engine.add("sleeper", SLEEPER, accept=lambda _: True)
    yield engine
    assert end_workers(root) == []


def test_events_after_any_place_add_up_to_the_summary(engine: Engine) -> None:
    """A thread that is read up to any place and then follows the records after it has the steps and
    the usage of its whole journal: each usage is counted once, a failed step's too.
    """
    bundle = granted(engine.store, COUNT)
    script = script_of(bundle, agents={"default": {"name": "claude"}})
    script.done(1, outcome=1, usage=USAGE)
    script.intent(2).attempt(2, 1, answer="?", usage=USAGE)
    script.attempt(2, 2, because="it failed", error={"kind": "timeout", "usage": USAGE})
    script.step(2, error={"kind": "agent", "message": "no", "usage": USAGE})
    script.intent(3).void(3).intent(3).step(3, outcome=3)
    script.control("pause").control("resume")
    placed = place_script(engine.store, bundle, script)
    place = (bundle.hash, placed.thread)
    events = list(records_between(engine.store, placed.path, 0, placed.path.stat().st_size))
    whole = LiveThread.read(engine, *place, events[-1].place).document()
    assert whole["used"] == {"inputTokens": 30, "outputTokens": 3, "cost": 1.5}
    assert (whole["steps"], whole["agents"]) == (3, ["claude"])
    for at in range(len(events)):
        thread = LiveThread.read(engine, *place, events[at].place)
        for event in events[at + 1 :]:
            thread.apply(event)
        assert thread.document() == whole


class Client:
    """A client of the list. kinds: of its changes. documents: those of each thread."""

    def __init__(self, changes: ListChanges) -> None:
        self.kinds: list[str] = []
        self.documents: dict[str, list[Any]] = {}
        self._changes: AsyncIterator[tuple[str, Any]] = aiter(changes)

    async def until(self, thread: ThreadId, status: str) -> list[Any]:
        """Return the documents of a thread as soon as the last one has a status."""
        found = self.documents.setdefault(thread, [])
        while not found or found[-1]["status"] != status:
            await self.next()
        return found

    async def followed(self, threads: list[ThreadId]) -> ThreadId:
        """Return one of some threads as soon as the list shows what it does."""
        while True:
            for thread in threads:
                if self.documents[thread][-1]["doing"]:
                    return thread
            await self.next()

    async def next(self) -> None:
        kind, document = await anext(self._changes)
        self.kinds.append(kind)
        if kind == "thread":
            self.documents.setdefault(document["threadId"], []).append(document)


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120):
            await work()

    asyncio.run(bounded())


def test_no_thread_is_lost(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that was being read when the last client left is followed for the next one. So are
    threads that were taken up while the order log was replaced, and no document comes twice.
    """
    monkeypatch.setattr(live_list, "INTERVAL_S", 0.0)
    held, is_read = threading.Event(), threading.Event()
    read = LiveThread.read

    def slowly(*place: Any) -> LiveThread:
        found = read(*place)
        if not is_read.is_set():
            is_read.set()
            held.wait()
        return found

    async def work() -> None:
        changes = LiveList(engine)
        first = engine.run("sleeper", prompt="")
        async with changes.changes():
            assert await asyncio.to_thread(is_read.wait, 60)
        async with changes.changes() as found:
            client = Client(found)
            await client.until(first, "running")
            held.set()
            async with changes.changes() as later:
                assert (await Client(later).until(first, "running"))[0]["flow"] == "sleeper"
            # in one turn of the loop: the next look sees another log
            (engine.store.logs / "order").unlink()
            second = engine.run("sleeper", prompt="")
            await client.until(second, "running")
            assert "reload" in client.kinds
            while not client.documents[second][-1]["doing"]:
                await client.next()
            bundle = engine.store.locate_thread(second)[0]
            feed = hub_of(engine).listen(bundle, second, lambda _: None)
            place = (await feed.reached()).place
            for listener in 2 * feed.listeners:
                listener(Event(kind="progress", body={"text": "half"}, place=place))
                if found._waiting:
                    await client.next()
            assert client.documents[second][-1]["doing"]["progress"] == "half"
            for thread in (first, second):
                await asyncio.to_thread(engine.kill, thread)
                await client.until(thread, "killed")
            for seen in client.documents.values():
                assert all(one != after for one, after in pairwise(seen))

    monkeypatch.setattr(LiveThread, "read", slowly)
    try:
        run(work)
    finally:
        held.set()


def test_a_thread_that_is_taken_up_during_the_first_look_is_listed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first client's look at the running threads follows the one at the end of the order log:
    the other way round, neither has a thread that was taken up between them.
    """
    threads: list[ThreadId] = []
    is_listed = threading.Event()
    running, noted_since = Engine.running, Store.noted_since

    def listed(engine: Engine) -> list[ThreadSummary]:
        try:
            return running(engine)
        finally:
            is_listed.set()

    def slowly(store: Store, place: OrderPlace) -> OrderTail | None:
        if place is START and not is_listed.is_set():
            is_listed.wait(0.3)  # the list is read later
            is_listed.set()
            threads.append(engine.run("sleeper", prompt=""))
        return noted_since(store, place)

    async def work() -> None:
        async with LiveList(engine).changes() as found:
            client = Client(found)
            while not threads or not client.documents.get(threads[0]):
                await client.next()
        await asyncio.to_thread(engine.kill, threads[0])

    engine.running()  # the index of threads is made
    monkeypatch.setattr(Engine, "running", listed)
    monkeypatch.setattr(Store, "noted_since", slowly)
    run(work)


def test_ends_beyond_the_bound(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list shows how threads ended that were too many to be followed, also if the store was
    away at first, and follows one of them as soon as another has ended.
    """
    monkeypatch.setattr(live_list, "INTERVAL_S", 0.0)
    monkeypatch.setattr(live_list, "LOOK_S", 0.01)
    monkeypatch.setattr(live_list, "MOST_FOLLOWED", 1)
    threads = [engine.run("sleeper", prompt="") for _ in range(3)]
    failures: list[Exception] = [StorageError("the store is away")]
    running = Engine.running

    def sometimes(engine: Engine) -> list[ThreadSummary]:
        if failures:
            raise failures.pop()
        return running(engine)

    async def work() -> None:
        async with LiveList(engine).changes() as found:
            client = Client(found)
            for thread in threads:
                await client.until(thread, "running")
            followed = await client.followed(threads)
            beyond, last = (one for one in threads if one != followed)
            for thread in (beyond, followed, last):
                if thread == last:
                    await client.followed([last])
                await asyncio.to_thread(engine.kill, thread)
                await client.until(thread, "killed")
        assert not failures

    monkeypatch.setattr(Engine, "running", sometimes)
    run(work)
