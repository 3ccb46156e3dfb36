"""Due schedules with an injected clock: each due time starts one thread at most, and one that fails
stops no other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Barrier

import pytest
from testbed.bundles import COUNT, granted, source
from testbed.foreground import at_window, environment
from testbed.processes import end_workers
from testbed.steering import finish
from testbed.windows import window
from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_bundles.ids import thread_created_ms
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.api import Engine
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.threads.starting import Chance
from uncaged_schedules.changes import add, find, list_schedules, remove, set_enabled
from uncaged_schedules.due import GRACE_MS, DueReport, due

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
WRITTEN = "the thread is `interrupted`, and `resume` starts it"
STARTED = "the thread runs, the schedule does not say so; the next `due` finds the thread"


def at(text: str) -> int:
    """A moment with its offset in milliseconds."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


class Clock:
    """A clock that a test sets."""

    def __init__(self, text: str) -> None:
        self.now_ms = at(text)

    def engine(self, store: Store) -> Engine:
        return Engine(store, Chance(clock_ms=lambda: self.now_ms))


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of this module's stores, whose workers end with it."""
    root = tmp_path_factory.mktemp("schedules")
    yield root
    for one in root.iterdir():
        assert end_workers(one) == []


@pytest.fixture
def store(stores: Path, request: pytest.FixtureRequest) -> Store:
    made = Store.open(stores / request.node.name)
    granted(made, COUNT)
    return made


def started(report: DueReport) -> list[tuple[str, int, int]]:
    """Schedule, due time and missed due times of each thread that was started, without problems."""
    assert report.problems == ()
    return [(run.schedule, run.due_ms, run.earlier) for run in report.started]


def test_a_schedule_runs_once_at_each_change_of_the_clock(store: Store) -> None:
    """A daily 02:30 of Berlin starts one thread on the night without 02:30, at 03:00, and one on
    the night with two of them, at the first.
    """
    clock = Clock("2026-03-28T12:00+01:00")
    engine = clock.engine(store)
    add(engine, "count", "30 2 * * *", timezone="Europe/Berlin", params={"n": 1})
    threads = []
    for moment, expected in (
        ("2026-03-29T01:59+01:00", None),
        ("2026-03-29T03:00+02:00", "2026-03-29T03:00+02:00"),
        ("2026-03-29T03:01+02:00", None),
        ("2026-03-29T04:30+02:00", None),
        ("2026-10-25T02:29+02:00", "2026-10-24T02:30+02:00"),
        ("2026-10-25T02:30+02:00", "2026-10-25T02:30+02:00"),
        ("2026-10-25T02:30+01:00", None),
        ("2026-10-25T03:30+01:00", None),
    ):
        clock.now_ms = at(moment)
        runs = due(engine).started
        assert [run.due_ms for run in runs] == ([at(expected)] if expected else []), moment
        threads += [run.thread_id for run in runs if run.thread_id is not None]
    assert [thread_created_ms(one) for one in threads] == [
        at("2026-03-29T03:00+02:00"),
        at("2026-10-24T02:30+02:00"),
        at("2026-10-25T02:30+02:00"),
    ]
    assert [finish(engine, one)["message"] for one in threads] == ["sum 1"] * 3
    assert find(engine, "count").thread_id == threads[-1]


def test_missed_due_times_are_caught_up_once_or_skipped(store: Store) -> None:
    """After three days, a schedule of each kind: one thread for the last of the missed times, and
    none. A time within the grace period is not missed.
    """
    clock = Clock("2026-06-01T00:00+00:00")
    engine = clock.engine(store)
    for name, missed in (("caught-up", "once"), ("left-out", "skip")):
        add(engine, "count", "0 7 * * *", name=name, timezone="UTC", missed=missed, params={"n": 1})  # type: ignore[arg-type]
    clock.now_ms = at("2026-06-03T12:00+00:00")
    report = due(engine)
    last_ms = at("2026-06-03T07:00+00:00")
    assert started(report) == [("caught-up", last_ms, 2)]
    assert [(run.schedule, run.due_ms, run.earlier) for run in report.skipped] == [
        ("left-out", last_ms, 2)
    ]
    clock.now_ms = last_ms + DAY_MS + GRACE_MS
    assert started(due(engine)) == [
        (name, last_ms + DAY_MS, 0) for name in ("caught-up", "left-out")
    ]
    clock.now_ms = last_ms + DAY_MS - HOUR_MS  # set back
    assert due(engine) == DueReport(started=(), skipped=(), resumed=(), problems=())
    set_enabled(engine, "caught-up", enabled=False)
    remove(engine, "left-out")
    clock.now_ms = last_ms + 3 * DAY_MS
    assert started(due(engine)) == []
    set_enabled(engine, "caught-up", enabled=True)
    assert started(due(engine)) == [], "what passed while it was disabled is not caught up"
    clock.now_ms += DAY_MS
    assert started(due(engine)) == [("caught-up", last_ms + 4 * DAY_MS, 0)]


def test_two_that_look_at_once_start_one_thread(store: Store) -> None:
    """Of four that look at the same time, one starts the thread; the others find that done."""
    clock = Clock("2026-06-01T00:00+00:00")
    engine = clock.engine(store)
    add(engine, "count", "@hourly", timezone="UTC", params={"n": 1})
    clock.now_ms += HOUR_MS
    barrier = Barrier(4)

    def look(_number: int) -> DueReport:
        barrier.wait()
        return due(clock.engine(store))

    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(look, range(4)))
    assert [run for report in reports for run in started(report)] == [
        ("count", at("2026-06-01T01:00+00:00"), 0)
    ]
    assert len(engine.threads()) == 1


@pytest.mark.parametrize("text", [WRITTEN, STARTED])
def test_a_due_time_has_one_thread_wherever_its_starter_dies(store: Store, text: str) -> None:
    """`due` dies after the thread is on disk, before and after a worker has it; the next one finds
    the thread, starts it if no worker has, and none after that starts another.
    """
    now_ms = Engine(store).clock_ms()
    before = Engine(store, Chance(clock_ms=lambda: now_ms - 400 * DAY_MS))
    add(before, "count", "@yearly", timezone="UTC", params={"n": 2})
    engine = Engine(store)
    command = [
        sys.executable,
        *at_window(window(text), "testbed.store_actions"),
        str(store.root),
        "due",
    ]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == -9, (done.returncode, done.stderr)
    [thread] = [one.thread_id for one in engine.threads()]
    assert find(engine, "count").thread_id is None
    assert [run.thread_id for run in due(engine).started] == [thread]
    assert finish(engine, thread)["message"] == "sum 3"
    assert due(engine).started == ()
    assert [one.thread_id for one in engine.threads()] == [thread]


def test_a_schedule_that_cannot_start_is_reported_and_others_go_on(
    store: Store, tmp_path: Path
) -> None:
    """A flow that was removed, disabled, or whose new version asks for more; a directory that is
    gone; a file that cannot be read: each is reported once for a due time, and shown.
    """
    clock = Clock("2026-06-01T00:00+00:00")
    engine = clock.engine(store)
    names = ("asks", "disabled", "fine", "gone", "moved", "unread")
    for name in names:
        granted(store, source(name, COUNT.decode().partition("options):\n")[2]))
        place = tmp_path / name
        place.mkdir()
        add(engine, name, "@daily", timezone="UTC", params={"n": 1}, directory=place)
    wider = source("asks", '\n    yield {"sleep": {"seconds": 0}}\n', policy={"sleep": {}})
    Registry(store).add("asks", read_bundle(wider, KNOWN), now_ms=1, granted=False)
    Registry(store).set_enabled("disabled", False)
    Registry(store).remove("gone")
    (tmp_path / "moved").rmdir()
    (store.root / "schedules" / "unread.json").write_text("{")
    arrived = tmp_path / "arrived"
    command = json.dumps(["sh", "-c", f"cat >> '{arrived}'; echo >> '{arrived}'"])
    store.config_path.write_text(f"notify: {{command: {command}}}\n")
    clock.now_ms += DAY_MS
    report = due(engine)
    assert [run.schedule for run in report.started] == ["fine"]
    sent = [json.loads(line) for line in arrived.read_text().splitlines()]
    assert {(one["event"], one["subject"], one["flow"]) for one in sent} == {
        ("schedule", name, name) for name in ("asks", "disabled", "gone", "moved")
    }
    said = {one.schedule: one.message for one in report.problems}
    assert set(said) == {None, "asks", "disabled", "gone", "moved"}
    assert "not whole JSON" in said[None]
    assert "not granted" in said["asks"]
    assert "is disabled" in said["disabled"]
    assert "gone" in said["gone"]
    assert str(tmp_path / "moved") in said["moved"]
    assert {one.name: one.problem for one in list_schedules(engine).schedules} == {
        **{name: said[name] for name in ("asks", "disabled", "gone", "moved")},
        "fine": "",
    }
    assert [one.schedule for one in due(engine).problems] == [None]
    Registry(store).set_enabled("disabled", True)
    clock.now_ms += DAY_MS
    assert [run.schedule for run in due(engine).started] == ["disabled", "fine"]
    assert find(engine, "disabled").problem == ""
    remove(engine, "unread")
    assert list_schedules(engine).problems == ()


def test_a_schedule_is_checked_when_it_is_added(store: Store) -> None:
    """A flow, a parameter or a name that is not valid is refused, and nothing is written."""
    engine = Clock("2026-06-01T00:00+00:00").engine(store)
    strict = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    granted(store, source("strict", '    yield {"null": {}}\n', parameters=strict))
    with pytest.raises(NotFoundError):
        add(engine, "cuont", "@daily")
    with pytest.raises(UsageError, match="n"):
        add(engine, "strict", "@daily")
    with pytest.raises(UsageError, match="gone' is not a directory"):
        add(engine, "count", "@daily", workspace=store.root / "gone")
    with pytest.raises(UsageError, match="no name of a schedule"):
        add(engine, "count", "@daily", name="../count")
    with pytest.raises(NotFoundError, match="there are none"):
        find(engine, "count")
    assert list_schedules(engine).schedules == ()
    made = add(
        engine, "count", "@daily", limits={"maxSteps": 3, "maxCost": None}, agents={"": "person"}
    )
    with pytest.raises(UsageError, match="there is a schedule 'count'"):
        add(engine, "count", "@daily")
    assert find(engine, "count") == made
    assert made.limits == {"maxSteps": 3}
    assert os.fspath(made.directory) == os.getcwd()  # noqa: PTH109 - what the default is


def test_a_time_beyond_the_calendar_hides_no_other_schedule(store: Store) -> None:
    """A file that names it is a problem of its own."""
    clock = Clock("2026-03-02T08:00:00+00:00")
    engine = clock.engine(store)
    add(engine, "count", "@daily", timezone="UTC", name="fine")
    path = add(engine, "count", "@daily", timezone="UTC", name="far").name
    file = store.root / "schedules" / f"{path}.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "doneMs": (1 << 48) - 1}))
    clock.now_ms += DAY_MS
    assert [one.name for one in list_schedules(engine).schedules] == ["fine"]
    report = due(engine)
    assert [run.schedule for run in report.started] == ["fine"]
    assert len(report.problems) == 1


def test_a_schedule_of_a_hash_has_the_name_of_its_flow(store: Store) -> None:
    engine = Clock("2026-03-02T08:00:00+00:00").engine(store)
    bundle = engine.registry.entry("count").hash
    engine.registry.remove("count")
    assert add(engine, bundle, "@daily", timezone="UTC").name == "count"
