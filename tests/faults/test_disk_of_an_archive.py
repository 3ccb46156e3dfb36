"""System calls by which `archive` and `prune` write to the store: their number for each thread, and
a fault at each kind of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.bundles import COUNT, Placed, granted, place_script, script_of
from testbed.foreground import environment
from testbed.straced import FAULTS, Fault, calls_of, injection, points, strace
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.journal import archive, lock
from uncaged_engine.threads.housekeeping import BATCH, archive_threads, prune

pytestmark = [pytest.mark.slow, pytest.mark.needs("strace")]

THREADS = 12
CALLS = ("openat", "syncfs", "fsync", "fdatasync", "rename", "unlink", "write")
POINTS = points(syncfs=1, fsync=1, rename=1, unlink=1)
POINTS += [f"{call} {THREADS // 2}" for call in ("write", "rename", "unlink")]
"""The first call of each kind, and one in the middle of the batch."""


def ended(engine: Engine, count: int) -> list[Placed]:
    """Threads that were killed after one step."""
    bundle = granted(engine.store, COUNT)
    return [
        place_script(engine.store, bundle, script_of(bundle, number=number).done(1).end("killed"))
        for number in range(count)
    ]


def act(engine: Engine, action: str, log: Path, inject: str | None = None) -> str:
    """Do one thing in a traced process; return what it acknowledged."""
    words = strace(log, calls=CALLS, inject=inject, alone=True)
    command = [
        *words,
        sys.executable,
        "-m",
        "testbed.store_actions",
        str(engine.store.root),
        action,
    ]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )
    if inject and "KILL" not in inject and done.returncode:
        assert "errors.StorageError" in done.stderr or "OSError" in done.stderr, done.stderr
    return done.stdout


def counts(engine: Engine, action: str, count: int, log: Path) -> dict[str, int]:
    """The number of calls below the directory of logs by name; journals and their temporary files
    are opened, other files are not counted.
    """
    threads = ended(engine, count)
    assert act(engine, action, log) == f"done {count}\n"
    names = [
        call.name
        for call in calls_of(log)
        if str(threads[0].path.parent) in call.arguments
        and (
            call.name != "openat" or archive.SUFFIX in call.arguments or ".data." in call.arguments
        )
    ]
    prune(engine, older_than_ms=0)
    return {name: names.count(name) for name in CALLS}


@pytest.mark.parametrize("count", [THREADS, 3 * THREADS])
def test_a_batch_is_brought_to_disk_by_two_flushes(
    engine: Engine, tmp_path: Path, count: int
) -> None:
    """A batch of any size costs one flush of the file system and one of the directory; a thread
    three open files (its end, its lock, its archive) and one write.
    """
    found = counts(engine, "archive", count, tmp_path / "log")
    assert found == {
        "openat": 3 * count,
        "syncfs": 1,
        "fsync": 1,
        "fdatasync": 0,
        "rename": count,
        "unlink": count,
        "write": count,
    }


@pytest.fixture
def layered(tmp_path: Path) -> Iterator[Engine]:
    """A store on an overlay, as in a container."""
    names = ("lower", "upper", "work", "merged")
    lower, upper, work, merged = (tmp_path / name for name in names)
    for directory in (lower, upper, work, merged):
        directory.mkdir()
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    words = ["mount", "-t", "overlay", "-o", options, "overlay", str(merged)]
    if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("only root, and not in every container, can mount an overlay")
    try:
        yield Engine(Store.open(merged / "store"))
    finally:
        subprocess.run(["umount", "--lazy", str(merged)], check=True)


def test_a_batch_on_an_overlay_is_flushed_file_by_file(layered: Engine, tmp_path: Path) -> None:
    """The flush of a whole overlay reports no failed write of the file system below it, so each
    archive is flushed by itself before its journal is removed.
    """
    found = counts(layered, "archive", THREADS, tmp_path / "log")
    assert (found["syncfs"], found["fsync"]) == (0, THREADS + 1)


def test_a_batch_fits_the_smallest_usual_limit_of_open_files(engine: Engine) -> None:
    """A process that may open 256 files archives more threads than one batch has."""
    count = len(ended(engine, BATCH + 1))
    command = ["prlimit", "--nofile=256", sys.executable, "-m", "testbed.store_actions"]
    done = subprocess.run(
        [*command, str(engine.store.root), "archive"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == (f"done {count}\n", "")


@pytest.mark.parametrize("count", [THREADS, 3 * THREADS])
def test_a_removed_thread_costs_three_open_files_and_no_flush(
    engine: Engine, tmp_path: Path, count: int
) -> None:
    """A removed thread has its end, its start and its lock opened; its directory is brought to disk
    once for all.
    """
    found = counts(engine, "prune", count, tmp_path / "log")
    assert found["openat"] == 3 * count
    assert found["unlink"] == count
    assert found["syncfs"] + found["fdatasync"] + found["write"] == 0
    assert found["fsync"] == 1


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("point", POINTS)
def test_one_fault_while_archiving(
    engine: Engine, tmp_path: Path, point: str, fault: Fault
) -> None:
    """Each thread is listed once and reads as before, its lock is free, and archiving again leaves
    packed journals only.
    """
    threads = ended(engine, THREADS)
    before = {one.thread: one.path.read_bytes() for one in threads}
    listed = {one.thread_id: one for one in engine.threads()}
    act(engine, "archive", tmp_path / "log", injection(point, fault))
    failed = [one for one in calls_of(tmp_path / "log") if one.result in (None, -1)]
    assert point.partition(" ")[0] in [one.name for one in failed], "the fault did not happen"
    assert {one.thread_id: one for one in engine.threads()} == listed
    assert {one.thread: archive.contents(one.path) for one in threads} == before
    assert not any(lock.is_live(one.path) for one in threads)
    directory = threads[0].path.parent
    if fault != "KILL":
        assert not list(directory.glob(".*.tmp")), "a failed batch leaves no temporary file"
    archive_threads(engine, [], older_than_ms=0)
    packed = sorted(f"{one.path.name}{archive.SUFFIX}" for one in threads)
    assert sorted(one.name for one in directory.glob("[!.]*.data.*")) == packed
    assert {one.thread: archive.contents(one.path) for one in threads} == before
