"""A journal's lock belongs to an open file, and ends with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from uncaged_engine.journal import lock

HOLDER = """
import os, sys
from uncaged_engine.journal import lock
fd = os.open(sys.argv[1], os.O_RDWR)
print(lock.take(fd), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal"
    path.write_bytes(b"x")
    return path


def test_one_open_file_holds_it_and_another_is_refused(path: Path) -> None:
    """The lock is the open file's, not the process's, so a second open file of one process is
    refused.
    """
    first, second = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    try:
        assert lock.take(first)
        assert lock.take(first)  # again by the same file is no conflict
        assert not lock.take(second)
        assert lock.is_held(second)
        assert not lock.is_held(first)
    finally:
        os.close(first)
        assert lock.take(second)
        os.close(second)


def test_asking_never_takes(path: Path) -> None:
    """An observer, even one that can only read, leaves the lock free."""
    fd = os.open(path, os.O_RDWR)
    try:
        for _ in range(3):
            assert not lock.is_live(path)
        assert lock.take(fd)
        assert lock.is_live(path)
    finally:
        os.close(fd)
    assert not lock.is_live(path)


def test_closing_another_descriptor_of_the_file_keeps_it(path: Path) -> None:
    """The classic trap of process-owned locks: any close would drop them. This one stays."""
    fd = os.open(path, os.O_RDWR)
    try:
        assert lock.take(fd)
        assert path.read_bytes() == b"x"
        os.close(os.open(path, os.O_RDWR))
        assert lock.is_live(path)
    finally:
        os.close(fd)


def test_a_missing_file_is_not_alive(tmp_path: Path) -> None:
    """A thread that was removed is no live thread."""
    assert not lock.is_live(tmp_path / "nothing")


def test_sigkill_frees_it_at_once(path: Path) -> None:
    """A journal whose holder has gone, in whatever way, does not look alive."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        assert lock.is_live(path)
        holder.kill()
        holder.wait()
        assert not lock.is_live(path)


def test_a_child_that_was_spawned_does_not_keep_it(path: Path) -> None:
    """Descriptors are closed at exec, so a long-lived child (a sandbox, an agent) never makes a
    dead thread look alive.
    """
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    assert lock.take(fd)
    with subprocess.Popen(
        ["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False, bufsize=0
    ) as cat:
        os.close(fd)
        assert cat.stdin is not None
        assert cat.stdout is not None
        cat.stdin.write(b"x")
        # a parent may go on a moment before exec has closed anything
        assert cat.stdout.read(1) == b"x"
        assert not lock.is_live(path)
