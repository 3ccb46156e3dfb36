"""A worker with many threads dies in the middle of all of them, and so does the sandbox that they
share.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest
from testbed.bundles import MARKED, Placed, place, source
from testbed.fault_checks import Follower, check_the_disk, check_the_recovery
from testbed.foreground import stop, worker
from testbed.processes import end
from testbed.steering import finish, intent_of, marks, settle, wait_for
from uncaged_bundles.errors import UncagedError
from uncaged_engine.api import Engine
from uncaged_engine.worker import client
from uncaged_engine.worker.server import SPARE_FILES

pytestmark = pytest.mark.slow

THREADS = 16
STEPS = 60
RESULT = {"success": True, "message": f"{STEPS} answers", "data": list(range(1, STEPS + 1))}


@contextmanager
def driven(engine: Engine, threads: list[Placed]) -> Iterator[list[Follower]]:
    """Drive all threads at once on the live worker, each with its follower."""
    followers = [Follower() for _ in threads]
    with ExitStack() as watching:
        for placed, follower in zip(threads, followers, strict=True):
            message = {
                "op": "drive",
                "threadId": placed.thread,
                "environment": {},
                "directory": "/",
            }
            client.request(engine.store, placed.bundle.hash, message, start=False)
            watching.enter_context(follower.watching(engine.store, placed))
        yield followers


def test_the_worker_dies_among_many_threads(engine: Engine) -> None:
    """No thread is lost, each goes on from its own journal, and a repeated effect has an attempt
    line.
    """
    threads = [
        place(engine.store, MARKED, number=number, params={"n": STEPS}) for number in range(THREADS)
    ]
    with (
        worker(engine.store, threads[0].bundle.hash, stays=True) as process,
        driven(engine, threads) as followers,
    ):
        wait_for(engine, threads[-1].thread, intent_of(STEPS // 3))
        stop(process)
    assert {one.status for one in engine.threads()} <= {"interrupted", "completed"}
    for placed, follower in zip(threads, followers, strict=True):
        check_the_disk(placed, placed.path.read_bytes(), follower, marks(engine, placed.thread))
    for placed in threads:
        check_the_recovery(engine, placed, RESULT)


def test_the_sandbox_dies_again_and_again_under_many_threads(engine: Engine) -> None:
    """All threads go on without a resume, and each effect of each thread is performed once."""
    threads = [
        place(engine.store, MARKED, number=number, params={"n": STEPS}) for number in range(THREADS)
    ]
    with (
        worker(engine.store, threads[0].bundle.hash, stays=True) as process,
        driven(engine, threads),
    ):
        wait_for(engine, threads[-1].thread, intent_of(5))
        for _ in range(3):
            assert (
                end(child.pid for child in psutil.Process(process.pid).children(recursive=True))
                == []
            )
            reached = [engine.thread(placed.thread).summary.steps for placed in threads]
            # each has answered since the kill, so that none is blamed for two deaths
            for placed, steps in zip(threads, reached, strict=True):
                if steps + 3 > STEPS:
                    settle(engine, placed.thread)
                else:
                    wait_for(engine, placed.thread, intent_of(steps + 3))
        for placed in threads:
            assert finish(engine, placed.thread) == RESULT
    for placed in threads:
        assert marks(engine, placed.thread) == list(range(1, STEPS + 1))
        assert engine.verify(placed.thread).ok


SLEEPER = source("sleeper", "    yield {'null': {'sleep_s': 600}}\n")


def taken(engine: Engine, threads: list[Placed]) -> list[bool]:
    """Ask the worker that lives for each of them; whether it took it."""
    answers = []
    for placed in threads:
        try:
            message = {
                "op": "drive",
                "threadId": placed.thread,
                "environment": {},
                "directory": "/",
            }
            client.request(engine.store, placed.bundle.hash, message, start=False)
        except UncagedError as exc:
            assert "Too many open files" in str(exc)
            answers.append(False)
        else:
            answers.append(True)
    return answers


def test_as_many_threads_as_the_machine_has_files_for(engine: Engine) -> None:
    """The worker raises the shell's limit of open files; at the machine's own limit the running
    threads go on, and the others can be started later.
    """
    threads = [place(engine.store, SLEEPER, number=number) for number in range(40)]
    bundle = threads[0].bundle.hash
    with worker(engine.store, bundle, before=("prlimit", "--nofile=32:4096")):
        assert all(taken(engine, threads))
    with worker(engine.store, bundle, before=("prlimit", "--nofile=32:32")) as process:
        answers = taken(engine, threads)
        assert (answers[0], answers[-1]) == (True, False)
        # left for the steps of those that it took
        assert psutil.Process(process.pid).num_fds() <= 32 - SPARE_FILES + 2
        assert [one.status for one in engine.threads()].count("running") == answers.count(True)
        for placed, was_taken in zip(threads, answers, strict=True):
            if was_taken:
                engine.kill(placed.thread)
                settle(engine, placed.thread)
        assert taken(engine, threads[-1:]) == [True]
        stop(process)
