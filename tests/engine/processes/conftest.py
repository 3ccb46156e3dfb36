"""The check after each test of child processes that nothing of them is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Each test leaves as many open files and child processes as it found."""
    before = opened(), children()
    yield
    assert (opened(), children()) == before


def opened() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children() -> set[str]:
    return {
        pid
        for thread in Path("/proc/self/task").iterdir()
        for pid in (thread / "children").read_text().split()
    }
