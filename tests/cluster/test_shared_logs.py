"""Debug logs of a shared store's threads."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest
from testbed.kitchens import Kitchen, Machine, opened
from testbed.stored_threads import started
from uncaged_bundles.ids import ThreadId
from uncaged_cluster.store import open_store
from uncaged_engine.services.canonical import encode

PATIENCE_S = 60
LINE = {"tag": "2KD9V4TZ", "content": "left", "timestamp": 7}


def info(*contents: str) -> bytes:
    """Return a log, with a line of another form."""
    lines = [{**LINE, "content": one} for one in contents]
    return b"no line\n" + b"".join(encode(one).encode() + b"\n" for one in lines)


def test_the_log_of_a_thread_is_followed_from_any_machine(
    kitchen: Kitchen, machine: Machine
) -> None:
    """Each line once, also after the log was replaced; of a removed thread none. A list of the
    store has the newest threads.
    """
    with (
        closing(open_store(kitchen.address, create=False, is_visible=True)) as store,
        opened(kitchen.address, kitchen.directory / "first") as engine,
    ):
        script = started(store, number=60)
        threads, place = store.threads, (script.bundle, script.thread)
        log = engine.thread_log(script.thread)
        assert log.new_lines() == []
        for contents, expected in (
            (["one", "two"], ["one", "two"]),
            (["one", "two"], []),
            (["one", "two", "three"], ["three"]),
            (["new"], ["new"]),
        ):
            threads.replace_info(*place, info(*contents))
            assert [line.content for line in log.new_lines()] == expected
        threads.replace_info(*place, info("new") + b'{"tag":"half')
        assert log.new_lines() == []
        said = machine.said("second", ["log", script.thread, "--json"])
        assert json.loads(said)["content"] == "new"
        newest = started(store, number=61)
        threads.replace_info(newest.bundle, newest.thread, info("newest"))
        of_store = engine.store_log()
        assert [line.content for line in of_store.recent_lines(1)] == ["newest"]
        assert of_store.recent_lines(0) == [] and of_store.new_lines() == []
        assert "no lines" in machine.said("second", ["log", "-n", "0"])
        for one in (script, newest):
            engine.remove_thread(one.thread)
        assert log.new_lines() == []
    assert "no thread" in machine.said("second", ["log", script.thread], code=5)


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_the_log_of_a_store_has_a_thread_once_its_worker_left_it(
    kitchen: Kitchen,
) -> None:
    """A thread that was started after the list, on another machine."""
    with (
        opened(kitchen.address, kitchen.directory / "first") as engine,
        opened(kitchen.address, kitchen.directory / "second") as other,
    ):
        log = engine.store_log()
        log.recent_lines(100)
        thread: ThreadId = other.run("clock", prompt="")
        found = []
        for _ in other.follow(thread):
            found += log.new_lines()
        other.wait_until_left((other.thread(thread).summary.hash, thread, kitchen.directory))
        give_up_s = time.monotonic() + PATIENCE_S
        while not (found := found + log.new_lines()) and time.monotonic() < give_up_s:
            time.sleep(0.05)  # the queue may have the thread for a moment after its journal's end
        assert {line.thread_id for line in found} == {thread}
        assert any("left: completed" in line.content for line in found)
        assert len({line.content for line in found}) == len(found)
        assert log.new_lines() == []
