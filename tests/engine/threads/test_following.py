"""Following shows what is on disk, and ends by itself."""

from __future__ import annotations

import os
import threading

import pytest
from testbed.bundles import COUNT, PLANNED, granted, place, place_script, script_of
from testbed.steering import intent_of, settle, wait_for
from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.journal import archive, lock
from uncaged_engine.threads.following import follow
from uncaged_engine.worker import client
from uncaged_engine.worker.wire import pack


def test_a_finished_thread_is_told_from_its_start(store: Store) -> None:
    """Every record in order, then its status, without any worker."""
    bundle = granted(store, COUNT)
    placed = place_script(
        store, bundle, script_of(bundle).done(1).end("completed", result={"message": "sum 1"})
    )
    events = list(follow(store, bundle.hash, placed.thread, placed.path))
    assert [event.kind for event in events] == ["record"] * 4 + ["status"]
    assert events[0].body["name"] == "count"
    assert not any("chain" in event.body for event in events)
    assert events[-1].body == {"status": "completed", "message": "sum 1", "steps": 1}


def test_a_thread_without_a_worker_is_reported_and_left(store: Store) -> None:
    """Interrupted, with a torn tail: the whole records and the status; no half line."""
    placed = place(store)
    placed.path.write_bytes(placed.path.read_bytes() + b'{"seq":1,"inte')
    events = list(follow(store, placed.bundle.hash, placed.thread, placed.path))
    assert [event.kind for event in events] == ["record", "status"]
    assert events[-1].body["status"] == "interrupted"


def test_a_thread_that_is_archived_or_removed_meanwhile(store: Store) -> None:
    """A follower reads an archived thread to its end; for a removed one it raises."""
    bundle = granted(store, COUNT)
    placed = place_script(
        store, bundle, script_of(bundle).done(1).end("completed", result={"message": "sum 1"})
    )
    archive.compress(placed.path)
    assert (
        list(follow(store, bundle.hash, placed.thread, placed.path))[-1].body["status"]
        == "completed"
    )
    placed.path.with_name(placed.path.name + archive.SUFFIX).unlink()
    with pytest.raises(NotFoundError, match="was removed"):
        list(follow(store, bundle.hash, placed.thread, placed.path))


def test_a_lock_that_is_held_for_a_moment_is_waited_for(store: Store) -> None:
    """A `pause` without a worker takes the lock itself; a follower that starts meanwhile goes on
    afterwards.
    """
    placed = place(store)
    fd = os.open(placed.path, os.O_RDWR)
    assert lock.take(fd)
    events: list[str] = []

    def watch() -> None:
        events.extend(
            event.kind for event in follow(store, placed.bundle.hash, placed.thread, placed.path)
        )

    watcher = threading.Thread(target=watch)
    watcher.start()
    watcher.join(0.1)  # it waits for its turn; it would be through if it did not
    assert watcher.is_alive()
    os.close(fd)
    watcher.join(timeout=60)
    assert events == ["record", "status"]


@pytest.mark.slow
def test_a_running_thread_is_told_as_it_goes(engine: Engine) -> None:
    """The records come while the next effect is in flight; what comes after the follower came too;
    the end ends it.
    """
    granted(engine.store, PLANNED)
    plan = [{"null": {"value": 1}}, {"null": {"sleep_s": 600}}]
    thread = engine.run("planned", prompt="", params={"plan": plan})
    seen = []
    for event in engine.follow(thread):
        seen.append(event)
        if intent_of(2)(event):
            engine.kill(thread)
    assert [next(iter(event.body)) for event in seen] == [
        "format",
        "seq",
        "seq",
        "seq",
        "seq",
        "end",
        "status",
    ]
    assert "void" in seen[4].body
    assert seen[-1].body["status"] == "killed"


@pytest.mark.slow
def test_several_followers_see_the_same(engine: Engine) -> None:
    """Each follower gets all records from the start record on."""
    granted(engine.store, PLANNED)
    plan = [*({"null": {"value": n}} for n in range(50)), {"null": {"sleep_s": 600}}]
    thread = engine.run("planned", prompt="", params={"plan": plan})
    told: list[list[object]] = [[], []]

    def watch(into: list[object]) -> None:
        into.extend(event.body for event in engine.follow(thread) if event.kind == "record")

    watchers = [threading.Thread(target=watch, args=(into,)) for into in told]
    for watcher in watchers:
        watcher.start()
    wait_for(engine, thread, intent_of(51))
    engine.kill(thread)
    for watcher in watchers:
        watcher.join(timeout=60)
    assert told[0] == told[1]
    assert len(told[0]) == 1 + 101 + 2


@pytest.mark.slow
def test_a_follower_that_does_not_read_blocks_no_other(engine: Engine) -> None:
    """The thread goes on to its end; the follower is dropped."""
    store = engine.store
    bundle = granted(store, COUNT)
    blocked = engine.run("count", prompt="", params={"n": 1500})
    connection = client.connect(store, bundle.hash)
    assert connection is not None
    with connection:
        connection.sendall(pack({"op": "follow", "threadId": blocked}))
        assert settle(engine, blocked)["status"] == "completed"


@pytest.mark.slow
def test_a_follower_that_goes_away_ends_nothing(engine: Engine) -> None:
    """Ctrl-C of a terminal leaves the thread running."""
    granted(engine.store, COUNT)
    thread = engine.run("count", prompt="", params={"n": 300})
    for _ in range(5):
        events = engine.follow(thread)
        next(events)
        events.close()  # type: ignore[attr-defined]  # it is a generator
    assert settle(engine, thread)["status"] == "completed"
