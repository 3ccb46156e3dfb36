"""A child process from its start until it is reaped."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from testbed.processes import await_end
from uncaged_engine.processes.child import Child

LONG_S = 60.0


def start(*argv: str) -> Child:
    return Child.start(argv, directory="/", environment={"PATH": os.environ["PATH"]})


def test_the_wait_for_an_exit_has_an_end_and_reaps_nothing() -> None:
    """A child that has exited is a zombie until `end`, so its number stays its own."""
    with start("sh", "-c", "read line; exit 5") as child:
        assert not child.ends_within(0.01)
        child.stdin.close()
        assert child.ends_within(LONG_S)
        assert child.exit_code == 5
        assert Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    assert not Path(f"/proc/{child.pid}").exists()


def test_a_child_that_has_ended_gets_no_signal() -> None:
    """After `end` its number may be another process's: signals are dropped, and a second end is the
    same.
    """
    child = start("sh", "-c", "exit 7")
    assert child.end(patience_s=LONG_S) == 7
    for send in (child.terminate, child.kill, lambda: child.signal(signal.SIGKILL)):
        send()
    assert (child.end(), child.exit_code) == (7, 7)
    assert child.cpu_s >= 0


def test_a_child_without_a_pipe_says_so() -> None:
    """A pipe that was not asked for is an error, not a None."""
    without = Child.start(["true"], directory="/", environment={}, stdin=subprocess.DEVNULL)
    with without as child, pytest.raises(ValueError, match="without that pipe"):
        _ = child.stdin


def test_what_its_children_left_behind_ends_with_it() -> None:
    """A process of the child's group that outlived the child is ended with it."""
    with start("sh", "-c", "sleep 600 >&- 2>&- & echo $!") as child:
        below = int(child.stdout.readline())
        assert child.ends_within(LONG_S)
    assert await_end(below)


def test_time_to_leave_and_grace() -> None:
    """A child may exit by itself first; one that does not gets TERM and its grace; then KILL."""
    assert start("sh", "-c", "exit 3").end(patience_s=LONG_S) == 3
    with start("sh", "-c", "trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done") as child:
        child.stdout.readline()
        assert child.end(grace_s=LONG_S) == 5
    assert start("sleep", "600").end() == -signal.SIGKILL
