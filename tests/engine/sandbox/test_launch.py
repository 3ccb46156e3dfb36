"""A child that cannot be started is an error that says why, and leaves nothing open."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest
from testbed.processes import await_end
from uncaged_bundles.errors import SandboxUnavailable
from uncaged_engine.processes.child import Child
from uncaged_engine.sandbox.launch import Launched, launch


@pytest.mark.parametrize("room", [0, 2, 5])
def test_no_more_files(room: int) -> None:
    """Whether the first pipe cannot be made or the last: those that were made are closed again."""
    before = sorted(Path("/proc/self/fd").iterdir())
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open("/", os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + room, limits[1]))
    try:
        with pytest.raises(SandboxUnavailable, match="Too many open files"):
            launch(None, limits=[], settings={})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_what_the_child_has_started_ends_with_it() -> None:
    """Bubblewrap's own child does not ask to die with it before it has heard from it; one that is
    ended early left it waiting for ever.
    """
    command = ["sh", "-c", "sleep 600 & echo $!; wait"]
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    below = int(child.stdout.readline())
    pipes = [os.pipe() for _ in range(3)]
    for _, written in pipes:
        os.close(written)
    [request, answer, stderr] = [read for read, _ in pipes]
    launched = Launched(
        child=Child(child), request_fd=request, answer_fd=answer, stderr_fd=stderr, cpu_s=None
    )
    assert launched.finish() == "it was ended by force"
    child.stdout.close()
    assert await_end(below)
