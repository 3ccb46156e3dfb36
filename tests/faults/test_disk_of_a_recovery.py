"""Faults of the disk and deaths of the worker while a torn journal is cut, while a blob is made,
and while a worker starts or leaves.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.bundles import MARKED, PLANNED, Placed, granted, place, place_script, script_of
from testbed.fault_checks import Follower, check_the_disk, check_the_recovery, drive
from testbed.foreground import worker
from testbed.steering import marks
from testbed.straced import FAULTS, Fault, calls_of, injection, points, strace
from uncaged_engine.api import Engine
from uncaged_engine.journal import lines
from uncaged_engine.journal.blobs import BlobDirectory
from uncaged_engine.journal.codec import encode

pytestmark = [pytest.mark.slow, pytest.mark.needs("strace")]

TORN = b'{"seq":3,"intent":{"null":{"val'
MENDING_POINTS = ["fsync 1", "rename 2", "fsync 2", "ftruncate 1", "fdatasync 1"]
"""The tail is kept aside (a file and its directory), then cut off. The first rename is the
socket's.
"""
SPILLING_POINTS = points(fsync=4, rename=2)
BIG = "b" * (lines.SPILL_BYTES + 1)


def marked(number: int) -> dict[str, object]:
    return {"null": {"value": number, "mark": True, "rule": "repeat"}}


@pytest.fixture
def torn(engine: Engine) -> Placed:
    """Two steps of five, and half a line."""
    script = (
        script_of(granted(engine.store, MARKED), params={"n": 5})
        .done(1, marked(1))
        .done(2, marked(2))
    )
    placed = place_script(engine.store, granted(engine.store, MARKED), script)
    placed.path.write_bytes(script.data + TORN)
    return placed


def suffer(
    engine: Engine, placed: Placed, log: Path, inject: str | None, *, leaves: bool = False
) -> Follower:
    follower = Follower()
    with worker(engine.store, placed.bundle.hash, before=strace(log, inject=inject)) as process:
        drive(engine.store, placed, follower)
        if leaves:
            process.wait(timeout=60)
    return follower


def fault_happened(log: Path) -> bool:
    return "(INJECTED)" in log.read_text() or any(call.result is None for call in calls_of(log))


def test_the_points_of_cutting_are_all_there_are(
    engine: Engine, torn: Placed, tmp_path: Path
) -> None:
    """The cut of a torn tail makes no other call that changes the store before the first step is
    written.
    """
    suffer(engine, torn, tmp_path / "log", None)
    before_the_first_step = []
    for call in calls_of(tmp_path / "log"):
        if call.name == "write" and f"<{torn.path}>" in call.arguments:
            break
        socket = ".sock" in call.arguments  # it is elsewhere if the store's path is long
        if (
            str(engine.store.root) in call.arguments
            and call.name not in ("write", "unlink")
            and not socket
        ):
            before_the_first_step.append(call.name)
    assert before_the_first_step == ["fsync", "rename", "fsync", "ftruncate", "fdatasync"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", MENDING_POINTS)
def test_one_fault_while_a_torn_tail_is_cut(
    engine: Engine, torn: Placed, tmp_path: Path, point: str, fault: Fault
) -> None:
    """The next owner cuts it again; what was cut is kept beside the journal; the whole steps are
    not touched.
    """
    log = tmp_path / "log"
    follower = suffer(engine, torn, log, injection(point, fault))
    assert fault_happened(log)
    check_the_disk(torn, torn.path.read_bytes(), follower, marks(engine, torn.thread))
    check_the_recovery(
        engine, torn, {"success": True, "message": "5 answers", "data": [1, 2, 3, 4, 5]}
    )
    assert [path.read_bytes() for path in torn.path.parent.glob(f"{torn.thread}.*.torn-*")] == [
        TORN
    ]
    assert marks(engine, torn.thread) == [3, 4, 5]


@pytest.fixture
def spilling(engine: Engine) -> Placed:
    """A thread with one effect whose intent and outcome are too large for a line."""
    return place(engine.store, PLANNED, params={"plan": [{"null": {"value": BIG}}]})


def test_the_points_of_spilling_are_all_there_are(
    engine: Engine, spilling: Placed, tmp_path: Path
) -> None:
    """Two blobs and the result's: each a file, a rename and a directory, before the line that names
    it.
    """
    suffer(engine, spilling, tmp_path / "log", None)
    names = [
        call.name
        for call in calls_of(tmp_path / "log")
        if "/blobs" in call.arguments and call.name != "write"
    ]
    assert names == ["fsync", "rename", "fsync"] * 3


def test_a_blob_that_is_there_is_made_durable_before_a_line_names_it(
    engine: Engine, spilling: Placed, tmp_path: Path
) -> None:
    """The process that wrote the blob may have died before its name was on disk."""
    BlobDirectory(engine.store.blobs).put(encode({"null": {"value": BIG}}).encode())
    suffer(engine, spilling, tmp_path / "log", None)
    calls = [
        call for call in calls_of(tmp_path / "log") if str(engine.store.root) in call.arguments
    ]
    first_line = next(
        number
        for number, call in enumerate(calls)
        if call.name == "write" and str(spilling.path) in call.arguments
    )
    assert [call.name for call in calls[:first_line] if "/blobs>" in call.arguments] == ["fsync"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", SPILLING_POINTS)
def test_one_fault_while_a_blob_is_made(
    engine: Engine, spilling: Placed, tmp_path: Path, point: str, fault: Fault
) -> None:
    """No line names a missing blob, and `resume` makes the blob again."""
    log = tmp_path / "log"
    follower = suffer(engine, spilling, log, injection(point, fault))
    assert fault_happened(log)
    check_the_disk(spilling, spilling.path.read_bytes(), follower, [])
    check_the_recovery(engine, spilling, {"success": True, "message": "1", "data": [BIG]})


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", ["unlink 1", "rename 1", "unlink 2"])
def test_one_fault_while_a_worker_comes_or_goes(
    engine: Engine, tmp_path: Path, point: str, fault: Fault
) -> None:
    """A fault at the socket's temporary name, its final name or its removal leaves the thread
    whole, and another worker can start.
    """
    placed = place(engine.store, MARKED, params={"n": 5})
    log = tmp_path / "log"
    follower = suffer(engine, placed, log, injection(point, fault), leaves=True)
    assert fault_happened(log)
    check_the_disk(placed, placed.path.read_bytes(), follower, marks(engine, placed.thread))
    check_the_recovery(
        engine, placed, {"success": True, "message": "5 answers", "data": [1, 2, 3, 4, 5]}
    )
