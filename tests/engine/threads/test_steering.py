"""What nobody runs any more is steered by whoever holds its lock, and nothing of it goes on behind
his back.
"""

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
    """What an agent started goes on, though the worker of its thread has died."""
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
    """It would go on to change files of a thread that everybody takes for killed."""
    placed, pid = agent
    engine.kill(placed.thread)
    assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert engine.thread(placed.thread).summary.status == "killed"


def test_a_pause_leaves_it_alone(engine: Engine, agent: tuple[Placed, int]) -> None:
    """It is ended when the thread is asked again."""
    placed, pid = agent
    engine.pause(placed.thread)
    assert psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_so_does_a_removal(engine: Engine, agent: tuple[Placed, int]) -> None:
    """Nothing works on in a directory that is going."""
    placed, pid = agent
    engine.remove_thread(placed.thread)
    assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert engine.threads() == []
