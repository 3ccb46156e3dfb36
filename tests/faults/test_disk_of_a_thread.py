"""The disk fails, or the worker dies, at every call that writes a three-step thread's journal."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.bundles import MARKED, Placed, place
from testbed.fault_checks import Follower, check_the_disk, check_the_recovery, cut_power, drive
from testbed.foreground import PATIENT_WORKER, worker
from testbed.steering import marks
from testbed.straced import FAULTS, Fault, calls_of, durable_bytes, injection, points, strace
from uncaged_engine.api import Engine
from uncaged_engine.worker import client

pytestmark = [pytest.mark.slow, pytest.mark.needs("strace")]

STEPS = 3  # a first, a middle and a last one
WRITES = 2 * STEPS + 1  # an intent and an outcome each, and the end
FLUSHES = STEPS + 1
POINTS = points(write=WRITES, fdatasync=FLUSHES)
RESULT = {"success": True, "message": "3 answers", "data": [1, 2, 3]}


@pytest.fixture
def placed(engine: Engine) -> Placed:
    return place(engine.store, MARKED, params={"n": STEPS})


def suffer(
    engine: Engine, placed: Placed, log: Path, inject: str | None, patch: str | None = None
) -> tuple[Follower, bool]:
    """Drive the thread on a worker with an injected fault or a patch.

    Returns:
        The follower with the events it received, and whether the worker is alive afterwards.
    """
    follower = Follower()
    python = (
        ("-m", "testbed.patched", f"{patch},patient-cell", "uncaged_engine.worker")
        if patch
        else PATIENT_WORKER
    )
    with worker(
        engine.store,
        placed.bundle.hash,
        python=python,
        before=strace(log, paths=[placed.path], inject=inject),
        stays=True,
    ):
        drive(engine.store, placed, follower)
        answer = client.request(engine.store, placed.bundle.hash, {"op": "list"}, start=False)
    assert answer is None or answer["threads"] == []
    return follower, answer is not None


def test_every_call_is_among_the_points(engine: Engine, placed: Placed, tmp_path: Path) -> None:
    """A step costs one flush and the end one; a run has no calls beside the points below."""
    suffer(engine, placed, tmp_path / "log", None)
    names = [call.name for call in calls_of(tmp_path / "log")]
    assert (names.count("write"), names.count("fdatasync"), len(names)) == (
        WRITES,
        FLUSHES,
        WRITES + FLUSHES,
    )
    assert marks(engine, placed.thread) == [1, 2, 3]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", POINTS)
def test_one_fault_while_running(
    engine: Engine, placed: Placed, tmp_path: Path, point: str, fault: Fault
) -> None:
    """No acknowledged step is lost, the worker outlives a bad disk, the failed handle is not used
    again, and `resume` completes.
    """
    log = tmp_path / "log"
    follower, alive = suffer(engine, placed, log, injection(point, fault))
    assert alive == (fault != "KILL")
    calls = calls_of(log)
    assert calls[-1].result in (None, -1), (
        "the fault was the last thing that happened to the journal"
    )
    check_the_disk(placed, placed.path.read_bytes(), follower, marks(engine, placed.thread))
    check_the_recovery(engine, placed, RESULT)


@pytest.mark.parametrize("point", POINTS)
def test_one_power_cut_while_running(
    engine: Engine, placed: Placed, tmp_path: Path, point: str
) -> None:
    """All bytes that were not flushed are lost with the worker; the steps that followers received
    or that had an effect outside are still in the journal.
    """
    log = tmp_path / "log"
    created = placed.path.stat().st_size
    follower, _ = suffer(engine, placed, log, injection(point, "KILL"))
    before = placed.path.read_bytes()
    cut_power(placed.path, durable_bytes(log, placed.path, created))
    check_the_disk(placed, before, follower, marks(engine, placed.thread))
    check_the_recovery(engine, placed, RESULT)


@pytest.mark.parametrize(("patch", "point"), [("no-flush", "write 4"), ("late-intent", "write 3")])
def test_the_harness_sees_a_missing_safeguard(
    engine: Engine, placed: Placed, tmp_path: Path, patch: str, point: str
) -> None:
    """Positive controls: without the flush, or with the intent after its effect, the same power cut
    is a loss that shows.
    """
    log = tmp_path / "log"
    created = placed.path.stat().st_size
    follower, _ = suffer(engine, placed, log, injection(point, "KILL"), patch)
    before = placed.path.read_bytes()
    cut_power(placed.path, durable_bytes(log, placed.path, created))
    with pytest.raises(AssertionError, match=r"without a trace|a follower received"):
        check_the_disk(placed, before, follower, marks(engine, placed.thread))


def test_the_harness_sees_a_silent_repetition(
    engine: Engine, placed: Placed, tmp_path: Path
) -> None:
    """Positive control: an owner that performs an open effect again without a line that says so is
    found out.
    """
    suffer(engine, placed, tmp_path / "log", injection("write 4", "KILL"))
    assert marks(engine, placed.thread) == [1, 2]
    suffer(engine, placed, tmp_path / "log", None, "no-attempt-line")
    assert engine.thread(placed.thread).summary.status == "completed"
    with pytest.raises(
        AssertionError, match="effect 2 was performed 2 times, with 0 attempt lines"
    ):
        check_the_recovery(engine, placed, RESULT)
