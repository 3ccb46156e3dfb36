"""A child that cannot be started is an error that says why, and leaves nothing open."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from uncaged_bundles.errors import SandboxUnavailable
from uncaged_engine.sandbox.launch import launch


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
