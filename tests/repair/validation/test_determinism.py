"""Repairs of the same repository with the same budget, on an idle and on a busy machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Protocol

import pytest

pytestmark = pytest.mark.slow

FILES = {
    "span.py": """\
def clamp(value, low, high):
    if value < low:
        return low
    if value > high:
        return low
    return value


def widths(pairs):
    return [clamp(end - start, 0, 9) for start, end in pairs]
""",
    "test_span.py": """\
from span import clamp, widths


def test_inside():
    assert clamp(3, 1, 5) == 3


def test_below():
    assert clamp(0, 1, 5) == 1


def test_above():
    assert clamp(9, 1, 5) == 5


def test_widths():
    assert widths([(1, 3), (0, 4)]) == [2, 4]
""",
}


class Answer(Protocol):
    @property
    def meta(self) -> Mapping[str, object]: ...


class Repository(Protocol):
    def play(self, role: str) -> Answer: ...
    def read(self, path: str) -> str: ...


Make = Callable[[Mapping[str, str | bytes]], Repository]


def test_load_does_not_change_the_patch(make_repository: Make) -> None:
    """Busy loops on every core that the search may use make it slower by the clock only."""
    idle = make_repository(dict(FILES))
    assert idle.play("coder").meta["status"] == "all-done"
    loops = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass",
            ]
        )
        for core in sorted(os.sched_getaffinity(0))[:2]
    ]
    try:
        busy = make_repository(dict(FILES))
        assert busy.play("coder").meta["status"] == "all-done"
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    assert busy.read("span.py") == idle.read("span.py")
    assert busy.read("span.py") != FILES["span.py"]
