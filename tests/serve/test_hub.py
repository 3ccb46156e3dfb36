"""Clients of a thread's events share one reader, and none of them holds another up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine

import pytest
from testbed.bundles import COUNT, granted, place_script, script_of, source
from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, Event
from uncaged_engine.journal import archive
from uncaged_serve import hub as hubs
from uncaged_serve import thread_feed
from uncaged_serve.hub import EventHub, hub_of
from uncaged_serve.thread_feed import ClientEvents

PATIENCE_S = 60
ASKER = source(
    "asker",
    """
    for number in range(4):
        yield {"null": {"value": number}}
    answer = yield {"ask": {"question": "go on?"}}
    return {"success": True, "message": str(answer["value"] if isinstance(answer, dict) else answer)}
""",
    policy={"null": {}, "ask": {}},
)


def in_loop(work: Callable[[], Coroutine[object, object, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), PATIENCE_S))


async def until(events: AsyncIterator[Event], status: str) -> list[Event]:
    """Read up to a status."""
    seen = []
    async for event in events:
        seen.append(event)
        if event.kind == "status" and event.body["status"] == status:
            return seen
    raise AssertionError(f"the stream ended before {status!r}: {seen}")


def ended_thread(engine: Engine, steps: int = 3) -> ThreadId:
    bundle = granted(engine.store, COUNT)
    script = script_of(bundle)
    for seq in range(1, steps + 1):
        script = script.done(seq)
    return place_script(engine.store, bundle, script.end("completed")).thread


def test_a_client_continues_after_the_place_it_has(engine: Engine) -> None:
    """A stream begins after the given place, which has to be the end of a record."""
    thread = ended_thread(engine)

    async def work() -> None:
        hub = EventHub(engine)
        async with hub.thread(thread) as events:
            whole = await until(aiter(events), "completed")
        assert [one.kind for one in whole] == ["record"] * (len(whole) - 1) + ["status"]
        places = [one.place for one in whole[:-1]]
        assert places == sorted(set(places))
        assert whole[-1].place == places[-1]
        async with hub.thread(thread, after=places[2]) as events:
            assert await until(aiter(events), "completed") == whole[3:]
        for wrong in (places[2] - 1, places[-1] + 1, -1):
            async with hub.thread(thread, after=wrong) as events:
                with pytest.raises(UsageError):
                    await until(aiter(events), "completed")
        with pytest.raises(NotFoundError):
            async with hub.thread("01AN4Z07BY79KA1307SR9X4MV3"):
                pass

    in_loop(work)


def test_a_client_that_leaves_too_much_unread_is_dropped(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow client's stream ends and says so; nothing is kept for it, and another client of the
    feed is not affected.
    """
    thread = ended_thread(engine)
    monkeypatch.setattr(thread_feed, "MOST_WAITING", 5)

    async def work() -> None:
        hub = EventHub(engine)
        async with hub.thread(thread) as slow, hub.thread(thread) as quick:
            slow_events = aiter(slow)
            last = (await until(slow_events, "completed"))[-1].place
            reading = aiter(quick)
            await until(reading, "completed")
            for number in range(6):
                event = Event(kind="progress", body={"text": str(number)}, place=last)
                slow.put(event)
                quick.put(event)
                assert await anext(reading) == event
            assert [event async for event in slow_events] == []
            assert slow.was_too_slow
            assert not quick.was_too_slow

    in_loop(work)


def test_a_reader_that_fails_ends_its_streams(engine: Engine) -> None:
    """A removed thread's streams end with the error, and a later client asks anew."""
    thread = ended_thread(engine)

    async def work() -> None:
        hub = EventHub(engine)
        async with hub.thread(thread) as events:
            reading = aiter(events)
            await until(reading, "completed")
            engine.remove_thread(thread)
            with pytest.raises(NotFoundError):
                await anext(reading)
        with pytest.raises(NotFoundError):
            async with hub.thread(thread):
                pass

    in_loop(work)


def test_clients_share_one_reader_over_a_resume(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many clients of a live thread have one follower at its worker, see the same records, and the
    same after the thread was answered; the reader ends with the last client.
    """
    monkeypatch.setattr(hubs, "LINGER_S", 0.0)
    engine.add("asker", ASKER, accept=lambda _: True)
    thread = engine.run("asker", prompt="")

    async def work() -> None:
        hub = hub_of(engine)
        assert hub_of(engine) is hub
        streams: list[ClientEvents] = []
        contexts = [hub.thread(thread) for _ in range(20)]
        for context in contexts:
            streams.append(await context.__aenter__())
        readers = [one for one in threading.enumerate() if one.name == f"follow-{thread}"]
        assert len(readers) <= 1
        reading = [aiter(one) for one in streams]
        before = await asyncio.gather(*(until(one, "waiting") for one in reading))
        await asyncio.to_thread(engine.answer, thread, "yes")
        after = await asyncio.gather(*(until(one, "completed") for one in reading))
        records = [
            [event for event in (*first, *second) if event.kind == "record"]
            for first, second in zip(before, after, strict=True)
        ]
        assert all(one == records[0] for one in records)
        expected = engine.thread(thread)
        assert [dict(one.body) for one in records[0]] == [dict(expected.start), *expected.records]
        for context in contexts:
            await context.__aexit__(None, None, None)
        while hub._feeds:
            await asyncio.sleep(0)

    in_loop(work)


def test_a_place_in_a_packed_journal_is_found(engine: Engine) -> None:
    """A thread that is packed while a client is away continues at the same place."""

    thread = ended_thread(engine)

    async def work() -> None:
        hub = EventHub(engine)
        async with hub.thread(thread) as events:
            whole = await until(aiter(events), "completed")
        archive.compress(engine.store.locate_thread(thread)[2])
        async with hub.thread(thread, after=whole[1].place) as events:
            assert await until(aiter(events), "completed") == whole[2:]

    in_loop(work)
