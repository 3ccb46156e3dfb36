"""Pause, kill and removal of a thread whose worker died and left agents' processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from testbed.bundles import COUNT, Placed, granted, place_script, script_of
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.processes.leftovers import ledger_of, record_process

SLEEP = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]


@pytest.fixture
def agent(store: Store) -> Iterator[tuple[Placed, int]]:
    """A thread whose worker died, and the pid of an agent's process that is still running."""
    bundle = granted(store, COUNT)
    placed = place_script(store, bundle, script_of(bundle).intent(1))
    scratch = store.private(placed.thread)
    scratch.mkdir()
    with subprocess.Popen(SLEEP, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        record_process(ledger_of(scratch, f"{placed.thread}/1"), process.pid)
        try:
            yield placed, process.pid
        finally:
            with suppress(psutil.Error):
                process.kill()


def test_a_kill_ends_what_a_dead_worker_left_running(
    engine: Engine, agent: tuple[Placed, int]
) -> None:
    """A process left running would change files of a killed thread."""
    placed, pid = agent
    engine.kill(placed.thread)
    assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert engine.thread(placed.thread).summary.status == "killed"


def test_a_pause_leaves_it_alone(engine: Engine, agent: tuple[Placed, int]) -> None:
    """The process is ended when the thread is resumed."""
    placed, pid = agent
    engine.pause(placed.thread)
    assert psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_so_does_a_removal(engine: Engine, agent: tuple[Placed, int]) -> None:
    """No process runs on in a directory that is removed."""
    placed, pid = agent
    engine.remove_thread(placed.thread)
    assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert engine.threads() == []
