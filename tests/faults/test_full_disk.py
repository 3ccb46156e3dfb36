"""A full disk while a thread runs, and while a torn journal is cut; with free space again, both go
on.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from testbed.bundles import COUNT, PLANNED, Placed, granted, place, place_script, script_of
from testbed.fault_checks import Follower, check_the_disk, check_the_recovery, drive
from testbed.foreground import worker
from testbed.processes import end_workers
from testbed.steering import finish, intent_of, settle, wait_for
from uncaged_bundles.errors import UncagedError
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.worker import client
from uncaged_templates.demo import ISSUE, write_demo

pytestmark = pytest.mark.slow

DISK_BYTES = 256 << 10
STEPS = 2000  # their lines would fill the disk


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Engine]:
    """A store on a disk of a few hundred kilobytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("only root, and not in every container, can mount a small disk")
    try:
        yield Engine(Store.open(disk / "store"))
        assert end_workers(disk) == []
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(directory: Path) -> Path:
    """Take all the room there is."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return filler


def grow(small: Engine) -> None:
    """A larger disk, as a person would make room."""
    subprocess.run(
        ["mount", "-o", f"remount,size={DISK_BYTES * 64}", str(small.store.root.parent)], check=True
    )


def test_a_disk_that_fills_up_while_a_thread_runs(small: Engine) -> None:
    """The thread is left as interrupted, the worker lives and says why; what it acknowledged is
    there; resume completes.
    """
    placed = place(small.store, COUNT, params={"n": STEPS})
    follower = Follower()
    with worker(small.store, placed.bundle.hash, stays=True):
        drive(small.store, placed, follower)
        assert client.request(small.store, placed.bundle.hash, {"op": "list"}, start=False)
        assert small.thread(placed.thread).summary.status == "interrupted"
        check_the_disk(placed, placed.path.read_bytes(), follower, [])
        with pytest.raises(UncagedError, match="No space left"):
            small.resume(placed.thread)
        grow(small)
        check_the_recovery(
            small, placed, {"success": True, "message": f"sum {STEPS * (STEPS + 1) // 2}"}
        )


def torn(small: Engine) -> Placed:
    bundle = granted(small.store, COUNT)
    script = script_of(bundle, params={"n": 3}).done(1)
    placed = place_script(small.store, bundle, script)
    placed.path.write_bytes(script.data + b'{"seq":2,"inte')
    return placed


def test_a_full_disk_while_a_torn_tail_is_cut(small: Engine) -> None:
    """There is no room to keep the tail aside, so it is not cut; the error is one for people; with
    room it is, and all goes on.
    """
    placed = torn(small)
    before = placed.path.read_bytes()
    with worker(small.store, placed.bundle.hash):
        filler = fill(small.store.root)
        with pytest.raises(UncagedError, match="No space left"):
            small.resume(placed.thread)
        assert placed.path.read_bytes() == before
        assert small.thread(placed.thread).summary.status == "interrupted"
        filler.unlink()
        check_the_recovery(small, placed, {"success": True, "message": "sum 6"})
    assert [part.read_bytes() for part in placed.path.parent.glob("*.torn-*")] == [
        b'{"seq":2,"inte'
    ]


def test_a_full_disk_while_a_thread_is_started(small: Engine) -> None:
    """A start that fails is not acknowledged and leaves no thread in the list; with free space the
    same call starts it.
    """
    granted(small.store, COUNT)
    finish(small, small.run("count", prompt="", params={"n": 1}))
    filler = fill(small.store.root)
    with pytest.raises(UncagedError, match="No space left"):
        small.run("count", prompt="x" * 10_000, params={"n": 1})
    assert len(small.threads()) == 1
    filler.unlink()
    finish(small, small.run("count", prompt="x" * 10_000, params={"n": 1}))


def test_a_full_disk_while_a_blob_is_made(small: Engine) -> None:
    """No line names it; resume makes it."""
    placed = place(
        small.store, PLANNED, params={"plan": [{"null": {"value": "v", "times": 600_000}}]}
    )
    follower = Follower()
    with worker(small.store, placed.bundle.hash):
        drive(small.store, placed, follower)
        assert small.thread(placed.thread).summary.status == "interrupted"
        check_the_disk(placed, placed.path.read_bytes(), follower, [])
        assert list(small.store.blobs.iterdir()) == []
        grow(small)
        check_the_recovery(
            small, placed, {"success": True, "message": "1", "data": ["v" * 600_000]}
        )


def test_a_full_disk_during_a_repair_pauses_the_thread(small: Engine, tmp_path: Path) -> None:
    """The repair of `solve-issue` has no room for its copies: the thread pauses with the place and
    the reason; `resume` solves it.
    """
    grow(small)
    engine = Engine.open(small.store.root)
    write_demo(tmp_path / "demo")
    options = RunOptions(directory=tmp_path / "demo", agents={"": "repair"})
    thread = engine.run("solve-issue", prompt=ISSUE, options=options)
    # the plan is made; now the disk fills up, but for a few lines of the journal
    wait_for(engine, thread, intent_of(2))
    filler = fill(small.store.root)
    os.truncate(filler, filler.stat().st_size - (20 << 10))
    settle(engine, thread)
    summary = engine.thread(thread).summary
    assert (summary.status, summary.steps) == ("paused", 1), summary
    assert "No space left" in summary.message or "disk" in summary.message
    assert str(small.store.work) in summary.message
    filler.unlink()
    engine.resume(thread, options=RunOptions(directory=tmp_path / "demo"))
    assert finish(engine, thread)["success"] is True


def test_a_full_disk_while_adding(small: Engine) -> None:
    """The registry is the old one; with room the flow is added."""
    granted(small.store, COUNT)
    filler = fill(small.store.root)
    with pytest.raises(UncagedError, match="No space left"):
        small.add("planned", PLANNED, accept=lambda _widened: True)
    assert set(small.registry.read().flows) == {"count"}
    filler.unlink()
    assert small.add("planned", PLANNED, accept=lambda _widened: True).changed
