"""`/api/threads/{id}/events`: rows of a thread's timeline as they reach the disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from pydantic import Field
from uncaged_bundles.errors import UsageError
from uncaged_engine.api import Engine, Event
from uncaged_engine.services.documents import Excerpt, LeanBlobs, RowCount
from uncaged_engine.services.journal import journal_bytes
from uncaged_engine.services.threads import parse_records

from ..hub import hub_of
from ..timelines import read_timeline
from .endpoints import Asked, EventStream, Fields, ServerEvent

MOST_ROWS = 200
"""Rows of one event."""
PROGRESS_CHARACTERS = 2_000
PAUSES_S = (0.05, 0.2, 1.0)


class PlaceQuery(Fields):
    """after: the place from which rows are wanted, as the document of the rows has it."""

    after: int = Field(default=0, ge=0)


async def followed(engine: Engine, asked: Asked) -> AsyncIterator[ServerEvent]:
    """Yield `rows` ({"rows", "open"}), `progress` and `status`. An event's id is a place of the
    journal, from which a client that connects again goes on.
    """
    name = asked.path["id"]
    after = _place(asked)
    count = await asyncio.to_thread(_before, engine, name, after)
    for delay_s in (*PAUSES_S, None):
        async with hub_of(engine).thread(name, after=after) as events:
            batches = _batches(aiter(events))
            try:
                first = await anext(batches, None)
            except UsageError:
                if delay_s is None:
                    raise
                # rows may be read before they are flushed, and events are not
                await asyncio.sleep(delay_s)
                continue
            if first is not None:
                for event in _told(first, count):
                    yield event
            async for batch in batches:
                for event in _told(batch, count):
                    yield event
            return


def _told(batch: list[Event], count: RowCount) -> Iterator[ServerEvent]:
    """Yield what a batch of a thread's events is for the page."""
    place = str(batch[-1].place)
    records = [event.body for event in batch if event.kind == "record"]
    rows = [row for record in records if (row := count.add(record)) is not None]
    if records:
        yield ServerEvent(kind="rows", data={"rows": rows, "open": count.open_step()}, id=place)
    for event in batch:
        if event.kind != "record":
            body = Excerpt(PROGRESS_CHARACTERS).of(event.body, event.kind)
            yield ServerEvent(kind=event.kind, data=body, id=place)


def _place(asked: Asked) -> int:
    if not asked.after:
        return int(asked.query.after)
    if not (asked.after.isascii() and asked.after.isdecimal() and len(asked.after) < 16):
        raise UsageError("Last-Event-ID is no place of a journal")
    return int(asked.after)


def _before(engine: Engine, name: str, after: int) -> RowCount:
    """Return the timeline up to a place of the journal."""
    if not after:
        return RowCount()
    place = engine.store.locate_thread(name)
    found = read_timeline(engine, place)
    if found.place == after:
        return found.count.copy()
    count = RowCount()
    for record in parse_records(journal_bytes(place[2])[:after], LeanBlobs(engine.store.blobs)):
        count.add(record)
    return count


async def _batches(events: AsyncIterator[Event]) -> AsyncIterator[list[Event]]:
    """Yield the events that are there at once, at most `MOST_ROWS` at a time."""
    batch: list[Event] = []
    following = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            if batch:
                await asyncio.sleep(0)  # an event that is there already arrives in this turn
                if not following.done() or len(batch) >= MOST_ROWS:
                    yield batch
                    batch = []
            event = await following
            if event is None:
                break
            batch.append(event)
            following = asyncio.ensure_future(anext(events, None))
        if batch:
            yield batch
    finally:
        following.cancel()


EVENT_ENDPOINTS = (
    EventStream(
        path="/api/threads/{id}/events",
        summary="A thread as it goes on: rows of its timeline, progress, status",
        handler=followed,
        query=PlaceQuery,
    ),
)
