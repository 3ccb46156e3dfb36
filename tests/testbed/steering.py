"""Waiting for a thread by following it, so that no test sleeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, Event

from .journals import fields_of


def settle(engine: Engine, thread: ThreadId) -> dict[str, Any]:
    """Wait until the thread stops; returns its status event's body."""
    return dict(list(engine.follow(thread))[-1].body)


def finish(engine: Engine, thread: ThreadId) -> Any:
    """Wait for a completed thread; returns its result."""
    status = settle(engine, thread)
    view = engine.thread(thread)
    assert status["status"] == "completed", (status, view.records[-3:])
    assert view.end is not None
    return view.end["result"]


def wait_for(engine: Engine, thread: ThreadId, wanted: Callable[[Event], bool]) -> Event:
    """Follow until an event is as wanted; the thread goes on meanwhile."""
    for event in engine.follow(thread):
        if wanted(event):
            return event
    raise AssertionError(f"thread {thread} stopped before that: {engine.thread(thread).summary}")


def intent_of(seq: int) -> Callable[[Event], bool]:
    """The moment at which step *seq* is about to be performed."""
    return lambda event: (
        event.kind == "record" and "intent" in event.body and event.body["seq"] == seq
    )


def written(engine: Engine, thread: ThreadId) -> list[dict[str, Any]]:
    """The thread's records without what differs from run to run."""
    return [fields_of(record) for record in engine.thread(thread).records]


def marks(engine: Engine, thread: ThreadId) -> list[int]:
    """Which effects left a mark outside, by seq, in the order in which they were performed."""
    path = engine.store.work / f"{thread}.null"
    return (
        [int(line.rpartition("/")[2]) for line in path.read_text().splitlines()]
        if path.exists()
        else []
    )
