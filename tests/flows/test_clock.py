"""Limits, waits and the order of threads while the wall clock is set to other times."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest
from testbed.bundles import COUNT, PLANNED, granted, place, source
from testbed.fault_checks import drive
from testbed.foreground import worker
from testbed.steering import finish, settle, written
from uncaged_bundles.storage.store import HOME_VARIABLE, Store
from uncaged_cli import main
from uncaged_engine.api import Engine
from uncaged_engine.threads.starting import Chance

pytestmark = pytest.mark.slow

CLOCK_BACK = ("-m", "testbed.patched", "clock-back", "uncaged_engine.worker")
YEAR_MS = 366 * 24 * 3600 * 1000
CALLER = source(
    "caller", "    yield {'flow': {'name': 'count', 'params': {'n': 1}}}\n", policy={"flow": {}}
)
WAITING = PLANNED.replace(
    b"'policy': {'null': {}}", b"'policy': {'null': {}, 'sleep': {}, 'now': {}}"
)


def driven(engine: Engine, *plan: Mapping[str, object], **limits: int) -> tuple[str, float]:
    """Drive a thread with a worker whose clock is set back ten hours a second; returns its status
    and how long that took.
    """
    placed = place(engine.store, WAITING, params={"plan": list(plan)}, limits=limits)
    with worker(engine.store, placed.bundle.hash, python=CLOCK_BACK):
        begin_s = time.monotonic()
        drive(engine.store, placed)
        status = settle(engine, placed.thread)["status"]
    return str(status), time.monotonic() - begin_s


def test_a_limit_of_time_holds_while_the_clock_steps_back(engine: Engine) -> None:
    """`--max-time` counts by a clock that is never set; what is under way is stopped."""
    status, took_s = driven(engine, {"now": {}}, {"null": {"sleep_s": 60}}, maxSeconds=1)
    [thread] = engine.threads()
    ends = written(engine, thread.thread_id)
    assert (status, ends[-1]["end"]) == ("limit", "limit")
    assert 1 <= took_s < 55
    assert 1000 <= ends[-1]["ranMs"] < 55_000, "the time already used is in the journal"
    stamps = [record["timestamp"] for record in engine.thread(thread.thread_id).records]
    assert stamps != sorted(stamps), "the control: the clock did step back"
    assert engine.verify(thread.thread_id).ok


def test_sleep_waits_as_long_as_it_says_while_the_clock_steps_back(engine: Engine) -> None:
    """A sleep of a second takes a second, not the hours by which the clock was set back."""
    status, took_s = driven(engine, {"sleep": {"seconds": 1}})
    assert status == "completed"
    assert 1 <= took_s < 300


def test_latest_goes_by_start_order(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thread whose id a clock in the future made is not `latest` once another was started."""
    granted(store, COUNT)
    early = Engine(store, Chance(clock_ms=lambda: time.time_ns() // 1_000_000 + YEAR_MS)).run(
        "count", prompt=""
    )
    engine = Engine(store)
    finish(engine, early)
    assert engine.thread("latest").summary.thread_id == early
    later = engine.run("count", prompt="")
    finish(engine, later)
    assert later < early
    assert engine.thread("latest").summary.thread_id == later
    assert [one.thread_id for one in engine.threads()] == [later, early]
    monkeypatch.setenv(HOME_VARIABLE, str(store.root))
    assert main.run(["threads", "-n", "1"]) == 0
    assert later in capsys.readouterr().out
    fork = engine.fork(early, start=False)
    assert engine.thread("latest").summary.thread_id == fork
    engine.remove_thread(fork)
    assert engine.thread("latest").summary.thread_id == later


def test_latest_is_no_child(engine: Engine) -> None:
    """A thread that another thread started is not `latest`, though it was started last; without its
    parent's journal it is.
    """
    granted(engine.store, COUNT)
    granted(engine.store, CALLER)
    parent = engine.run("caller", prompt="")
    finish(engine, parent)
    [child] = [one.thread_id for one in engine.threads() if one.thread_id != parent]
    assert [one.thread_id for one in engine.threads()] == [child, parent], (
        "the control: it was started last"
    )
    assert engine.thread("latest").summary.thread_id == parent
    engine.remove_thread(parent)
    assert engine.thread("latest").summary.thread_id == child
    engine.resume(engine.fork(child, start=False))
    assert engine.thread("latest").summary.thread_id not in (child, parent), (
        "a fork of a child is a person's"
    )
