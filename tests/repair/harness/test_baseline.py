"""Baseline on a machine that is idle, and on one that is busy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pytest
from uncaged_repair.harness.baseline import Baseline, measure
from uncaged_repair.harness.harness import Harness
from uncaged_repair.harness.host import RunRequest
from uncaged_repair.task import RepairLimits, Task

pytestmark = pytest.mark.slow

BUSY = 5
CODE = """
def spend(seconds):
    import time
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
    return seconds
"""
TESTS = """
import time
import pytest
from code_of import spend


@pytest.mark.parametrize("number", range(4))
def test_passing(number):
    assert spend(0.15) == 0.15


@pytest.mark.parametrize("number", range(2))
def test_failing(number):
    assert spend(0.15) == 4


def test_endless():
    spend(1000)
"""
WAITING = """
import time


def test_waiting():
    time.sleep(1000)


def test_other():
    pass
"""


class Repository(Protocol):
    @property
    def top(self) -> Path: ...
    @property
    def scratch(self) -> Path: ...


Make = Callable[[Mapping[str, str | bytes]], Repository]


def silent(message: str, *, candidates: int | None = None, file: str | None = None) -> None:
    """Drop progress: there are no followers."""


@contextmanager
def one_busy_core() -> Iterator[None]:
    """Leave one core to this process and its children, and let others compute on it as well."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    busy = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"])
        for _ in range(BUSY)
    ]
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        for process in busy:
            process.send_signal(signal.SIGKILL)
            process.wait()


def task_for(repository: Repository) -> Task:
    return Task(
        role="planner",
        worktree=repository.top,
        scratch=repository.scratch,
        text="",
        steps=(),
        environment={"PATH": os.environ["PATH"]},
        test_command=None,
        sandbox="auto",
        limits=RepairLimits(),
        wall_s=600.0,
    )


def sets(baseline: Baseline) -> tuple[object, ...]:
    return (
        dict(baseline.outcomes),
        {name: baseline.lines_of(name) for name in baseline.failing},
        dict(baseline.passed),
        baseline.unsteady,
        baseline.complete,
    )


def test_a_busy_machine_measures_the_same_baseline(make_repository: Make) -> None:
    """The suite needs more time by the clock than its limit of processor time; all tests run, and
    each is traced.
    """
    found = []
    with Harness(
        task_for(make_repository({"code_of.py": CODE, "test_code.py": TESTS})), silent
    ) as harness:
        collected = harness.collect()
        found.append(measure(harness.host, collected, test_s=0.6, suite_s=2.5, progress=silent))
        with one_busy_core():
            found.append(measure(harness.host, collected, test_s=0.6, suite_s=2.5, progress=silent))
    assert found[0].complete
    assert found[0].outcomes["test_code.py::test_endless"] == "timeout"
    assert len(found[0].failing) == 3
    assert len(found[0].passed) == 4
    assert sets(found[1]) == sets(found[0])


def test_a_suite_is_cut_off_by_its_processor_time(make_repository: Make) -> None:
    """A test that is cut off with the suite has no outcome: it did not fail."""
    with Harness(
        task_for(make_repository({"code_of.py": CODE, "test_code.py": TESTS})), silent
    ) as harness:
        collected = harness.collect()
        baseline = measure(harness.host, collected, test_s=0.6, suite_s=0.35, progress=silent)
    assert not baseline.complete
    assert list(baseline.outcomes) == [
        f"test_code.py::test_passing[{number}]" for number in range(len(baseline.outcomes))
    ]
    assert 1 <= len(baseline.outcomes) <= 3
    assert set(baseline.outcomes.values()) == {"passed"}


def test_a_test_that_waits_is_cut_off_by_the_clock(make_repository: Make) -> None:
    """A test that computes nothing uses no processor time; it times out, and the next one runs."""
    with Harness(task_for(make_repository({"test_waiting.py": WAITING})), silent) as harness:
        harness.collect()
        names = ("test_waiting.py::test_waiting", "test_waiting.py::test_other")
        run = harness.host.run(RunRequest(tests=names, cpu_s=5.0, wall_s=1.0, total_s=20.0))
    assert run.outcomes == dict(zip(names, ("timeout", "passed"), strict=True))
    assert run.end == "finished"
