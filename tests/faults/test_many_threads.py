"""A worker with many threads dies in the middle of all of them, and so does the sandbox that they share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest
from testbed.bundles import MARKED, Placed, place
from testbed.foreground import stop, worker
from testbed.judging import Witness, judge_the_disk, judge_the_rest
from testbed.processes import end
from testbed.steering import finish, intent_of, marks, wait_for
from uncaged_engine.api import Engine
from uncaged_engine.worker import client

pytestmark = pytest.mark.slow

THREADS = 16
STEPS = 60
RESULT = {"success": True, "message": f"{STEPS} answers", "data": list(range(1, STEPS + 1))}


@contextmanager
def driven(engine: Engine, threads: list[Placed]) -> Iterator[list[Witness]]:
    """All of them at once on the worker that lives, each with somebody who follows it."""
    witnesses = [Witness() for _ in threads]
    with ExitStack() as watching:
        for placed, witness in zip(threads, witnesses, strict=True):
            message = {"op": "drive", "threadId": placed.thread, "environment": {}, "directory": "/"}
            client.request(engine.store, placed.bundle.hash, message, start=False)
            watching.enter_context(witness.watching(engine.store, placed))
        yield witnesses


def test_the_worker_dies_among_many_threads(engine: Engine) -> None:
    """None is lost, each goes on from where its own journal stands, and what was performed twice says so."""
    threads = [place(engine.store, MARKED, number=number, params={"n": STEPS}) for number in range(THREADS)]
    with worker(engine.store, threads[0].bundle.hash) as process, driven(engine, threads) as witnesses:
        wait_for(engine, threads[-1].thread, intent_of(STEPS // 3))
        stop(process)
    assert {one.status for one in engine.threads()} <= {"interrupted", "completed"}
    for placed, witness in zip(threads, witnesses, strict=True):
        judge_the_disk(placed, placed.path.read_bytes(), witness, marks(engine, placed.thread))
    for placed in threads:
        judge_the_rest(engine, placed, RESULT)


def test_the_sandbox_dies_again_and_again_under_many_threads(engine: Engine) -> None:
    """Nobody has to resume anything, and every effect of every thread is performed once."""
    threads = [place(engine.store, MARKED, number=number, params={"n": STEPS}) for number in range(THREADS)]
    with worker(engine.store, threads[0].bundle.hash) as process, driven(engine, threads):
        wait_for(engine, threads[-1].thread, intent_of(5))
        for _ in range(3):
            before = [engine.thread(placed.thread).summary.steps for placed in threads]
            assert end(child.pid for child in psutil.Process(process.pid).children(recursive=True)) == []
            for placed, steps in zip(threads, before, strict=True):  # each has answered since, so that none is blamed for two deaths
                wait_for(engine, placed.thread, intent_of(min(steps + 3, STEPS)))
        for placed in threads:
            assert finish(engine, placed.thread) == RESULT
    for placed in threads:
        assert marks(engine, placed.thread) == list(range(1, STEPS + 1))
        assert engine.verify(placed.thread).ok
