"""Pages of threads by the index: its completion, and threads found by status."""

from __future__ import annotations

from typing import Any

import pytest
from testbed.bundles import COUNT, granted, place_script, script_of
from testbed.journals import NOW_MS
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.state import observe
from uncaged_engine.threads import paging
from uncaged_engine.threads.paging import complete_index
from uncaged_engine.threads.starting import Chance

HOUR_MS = 3_600_000


def filled(store: Store) -> ThreadId:
    """Place four ended threads, a journal that cannot be read, and one thread whose worker died
    during a sleep of a second; return that one.
    """
    bundle = granted(store, COUNT)
    for number in range(4):
        place_script(store, bundle, script_of(bundle, number=number).done(1).end("completed"))
    place_script(store, bundle, script_of(bundle, number=4)).path.write_bytes(b"no journal\n")
    asleep = script_of(bundle, number=5).intent(1, {"sleep": {"seconds": 1}})
    return place_script(store, bundle, asleep).thread


def test_an_index_is_completed_in_parts(store: Store) -> None:
    """Each journal is read and kept; a journal that cannot be kept is read once in a run."""
    filled(store)
    assert list(complete_index(store, part_size=4)) == [4, 2]
    assert list(complete_index(store, part_size=4)) == [1]
    assert paging.count(store, most_read=0).unread == 1


def test_sleepers_and_the_dead_are_found_by_the_index(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look for threads that died or sleep reads no journal of a thread that has ended."""
    asleep = filled(store)
    list(complete_index(store))
    read: list[ThreadId] = []
    real = observe.read_summary

    def counted(store: Store, bundle: Any, thread: Any, path: Any) -> Any:
        read.append(thread)
        return real(store, bundle, thread, path)

    monkeypatch.setattr(paging, "read_summary", counted)
    store.config_path.write_text("notify: {command: [cat], events: [interrupted, unknown]}\n")
    engine = Engine(store, Chance(clock_ms=lambda: NOW_MS + HOUR_MS))
    assert engine.sleepers() == [asleep]
    assert engine.notify_deaths() == []
    assert len({one for one in read if one != asleep}) == 1, "the one that cannot be kept"
