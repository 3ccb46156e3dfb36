"""Followers pass on what is on disk, and the reason why there is no more, also when the worker is
dead or the disk is broken.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import MARKED, PLANNED, Placed, place
from testbed.fault_checks import check_the_recovery, drive, drive_message
from testbed.foreground import PATIENT_WORKER, environment, worker
from testbed.steering import intent_of, marks
from testbed.straced import Fault, calls_of, injection, points, strace
from uncaged_bundles.storage.runtime import VARIABLE
from uncaged_bundles.storage.store import HOME_VARIABLE
from uncaged_engine.api import Engine, Event
from uncaged_engine.journal import trouble
from uncaged_engine.worker import client

pytestmark = [pytest.mark.slow, pytest.mark.needs("strace")]

STEPS = 5
POINTS = points(write=2 * STEPS + 1, fdatasync=STEPS + 1)
RESULT = {"success": True, "message": "5 answers", "data": [1, 2, 3, 4, 5]}
LAST_FLUSH = f"fdatasync {STEPS + 1}"
REASONS: dict[Fault, str] = {"EIO": "Input/output error", "ENOSPC": "No space left on device"}


@pytest.fixture
def placed(engine: Engine) -> Placed:
    return place(engine.store, MARKED, params={"n": STEPS})


@pytest.fixture(autouse=True)
def _own_runtime_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runtime").mkdir(mode=0o700)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "runtime"))


def run_with(engine: Engine, placed: Placed, log: Path, point: str, fault: Fault) -> None:
    """Drive the thread on a worker that meets a fault at this point of its journal."""
    with worker(
        engine.store,
        placed.bundle.hash,
        python=PATIENT_WORKER,
        before=strace(log, paths=[placed.path], inject=injection(point, fault)),
    ):
        drive(engine.store, placed)


def followed(
    engine: Engine, placed: Placed, before: Sequence[str] = ()
) -> tuple[int, list[dict[str, Any]], str]:
    """Run `thread ID --follow --json`; returns exit code, the records, and what it says of the
    end.
    """
    words = [
        *before,
        sys.executable,
        "-m",
        "uncaged_cli",
        "thread",
        placed.thread,
        "--follow",
        "--json",
    ]
    done = subprocess.run(
        words,
        env={**environment(), HOME_VARIABLE: str(engine.store.root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    records = [event["record"] for event in events if event["event"] == "record"]
    assert events[-1]["event"] == "end", done.stderr
    return (
        done.returncode,
        records,
        f"{events[-1]['thread']['status']}: {events[-1]['thread']['message']}",
    )


def test_a_follower_flushes_what_a_dead_worker_left_in_memory(
    engine: Engine, placed: Placed, tmp_path: Path
) -> None:
    """Lines behind the last reported flush, with a free lock, get one fdatasync of the follower's
    own, before they are passed on.
    """
    run_with(engine, placed, tmp_path / "worker", "fdatasync 4", "KILL")
    code, records, _ = followed(
        engine,
        placed,
        strace(tmp_path / "log", calls=["fdatasync", "pread64"], paths=[placed.path]),
    )
    calls = [call.name for call in calls_of(tmp_path / "log")]
    assert "fdatasync" in calls
    assert calls.index("fdatasync") < calls.index("pread64", calls.index("fdatasync"))
    assert (code, records[-1]["seq"], "intent" in records[-1]) == (3, 4, True)
    assert marks(engine, placed.thread) == [1, 2, 3]


def test_a_follower_that_cannot_flush_passes_nothing_on(
    engine: Engine, placed: Placed, tmp_path: Path
) -> None:
    """Lines of a dead worker that the disk refuses are not shown, by this follower or the next; the
    disk and the reason are.
    """
    run_with(engine, placed, tmp_path / "worker", "fdatasync 4", "KILL")
    broken = strace(
        tmp_path / "log", calls=["fdatasync"], paths=[placed.path], inject="fdatasync:error=EIO"
    )
    # the kernel says it once: the second flush succeeds and means nothing
    for before in (broken, []):
        code, records, end = followed(engine, placed, before)
        assert (code, records[-1]["seq"], "intent" in records[-1]) == (3, 3, True)
        assert end.startswith("interrupted: ")
        assert str(placed.path) in end
        assert "Input/output error" in end
    check_the_recovery(engine, placed, RESULT)


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
def test_a_failed_flush_of_the_end_is_no_completed_thread(
    engine: Engine, placed: Placed, tmp_path: Path, fault: Fault
) -> None:
    """After a failed flush of the last outcome and the end record, no reader reports `completed`
    before `resume` has flushed them.
    """
    run_with(engine, placed, tmp_path / "worker", LAST_FLUSH, fault)
    assert b'"end":"completed"' in placed.path.read_bytes()
    code, records, end = followed(engine, placed)
    assert code == 3
    assert not any("end" in record or record.get("outcome") == STEPS for record in records)
    for said in (end, engine.threads()[0].message, engine.thread(placed.thread).summary.message):
        assert f"{placed.path}: the flush failed ({REASONS[fault]})" in said
    assert engine.threads()[0].status == "interrupted"
    engine.resume(placed.thread)
    code, records, end = followed(engine, placed)
    assert (code, "end" in records[-1], end) == (0, True, "completed: 5 answers")
    assert marks(engine, placed.thread) == [1, 2, 3, 4, 5]
    assert engine.verify(placed.thread).ok


@pytest.mark.parametrize("point", ["fdatasync 2", "write 2"])
def test_a_live_follower_learns_the_reason_where_no_note_can_be_left(
    engine: Engine, tmp_path: Path, point: str
) -> None:
    """Without a runtime directory the worker's own word is what there is: it reaches those who
    follow at that moment.
    """
    (tmp_path / "runtime" / "uncaged").write_bytes(b"")
    placed = place(engine.store, PLANNED, params={"plan": [{"null": {"sleep_s": 600}}]})
    events: list[Event] = []
    with worker(
        engine.store,
        placed.bundle.hash,
        before=strace(tmp_path / "log", paths=[placed.path], inject=injection(point, "EIO")),
        stays=True,
    ):
        client.request(engine.store, placed.bundle.hash, drive_message(placed), start=False)
        for event in engine.follow(placed.thread):
            events.append(event)
            if intent_of(1)(event):
                engine.kill(placed.thread)  # its void and its end are the next lines
    assert [next(iter(event.body)) for event in events] == ["format", "seq", "status"]
    said = events[-1].body
    assert said["status"] == "interrupted"
    assert f"{placed.path}: the " in said["message"]
    assert "Input/output error" in said["message"]


def test_the_doubtful_lines_are_written_again(
    engine: Engine, placed: Placed, tmp_path: Path
) -> None:
    """After a failed flush the pages may count as written, so the next owner writes them once more
    and flushes that.
    """
    run_with(engine, placed, tmp_path / "worker", LAST_FLUSH, "EIO")
    before = placed.path.read_bytes()
    words = [
        *strace(tmp_path / "log", calls=["pwrite64", "fdatasync"], paths=[placed.path]),
        sys.executable,
        "-m",
        "uncaged_cli",
    ]
    variables = {**environment(), HOME_VARIABLE: str(engine.store.root)}
    subprocess.run(
        [*words, "resume", placed.thread],
        env=variables,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert [call.name for call in calls_of(tmp_path / "log")][:2] == ["pwrite64", "fdatasync"]
    assert placed.path.read_bytes() == before
    assert trouble.find(placed.path) is None


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("point", POINTS)
def test_every_reader_gets_the_path_and_the_reason(
    engine: Engine, placed: Placed, tmp_path: Path, point: str, fault: Fault
) -> None:
    """A live follower, `threads` and `thread`, after a fault at any call that writes the journal;
    and no more once it is over.
    """
    last: list[Event] = []
    with worker(
        engine.store,
        placed.bundle.hash,
        python=PATIENT_WORKER,
        before=strace(tmp_path / "log", paths=[placed.path], inject=injection(point, fault)),
    ):
        client.request(engine.store, placed.bundle.hash, drive_message(placed), start=False)
        follower = threading.Thread(target=lambda: last.extend(engine.follow(placed.thread)))
        follower.start()
        follower.join(60)
    what = "write" if point.startswith("write") else "flush"
    reason = f"{placed.path}: the {what} failed ({REASONS[fault]})"
    assert last[-1].body["status"] == "interrupted"
    assert reason in last[-1].body["message"]
    assert reason in engine.threads()[0].message
    assert reason in engine.thread(placed.thread).summary.message
    check_the_recovery(engine, placed, RESULT)
    assert reason not in engine.thread(placed.thread).summary.message
