"""A copy of a store dies in each window that the code names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from testbed.filled_stores import filled, shared_files
from testbed.foreground import at_window, environment
from testbed.windows import Window, window
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.copying import CopyReport, copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend

pytestmark = pytest.mark.slow

UNSTARTED = "an id without a thread, and files beside no journal, which nothing reads"
UNPACKED = "the thread is whole, and not packed"


def die(source: Path, target: Path, at: Window, count: int) -> None:
    """Copy in a process that dies at the window's *count*-th time."""
    python = at_window(at, "uncaged_cli", count=count)
    done = subprocess.run(
        [sys.executable, *python, "store", "copy", str(source), str(target)],
        env=environment(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == -9, (done.returncode, done.stderr)


def copy(source: Path, target: Path) -> CopyReport:
    """Copy in this process."""
    return copy_store(
        DirectoryBackend.open(source, create=False),
        DirectoryBackend.open(target, create=True),
        replace=False,
        progress=lambda _kind, _count: None,
    )


def check(root: Path) -> list[str]:
    """Return what a check of a store has to report."""
    store = DirectoryBackend.open(root, create=False)
    return check_store(store, progress=lambda _kind, _count: None).problems


@pytest.mark.parametrize(("text", "count"), [(UNSTARTED, 2), (UNPACKED, 1)])
def test_a_copy_dies_at_a_thread(tmp_path: Path, text: str, count: int) -> None:
    """The threads that the target has are whole, and the next copy makes the rest."""
    source, target = filled(tmp_path / "a").root, tmp_path / "b"
    die(source, target, window(text), count)
    assert check(target) == []
    assert copy(source, target).problems == []
    assert shared_files(target) == shared_files(source)
