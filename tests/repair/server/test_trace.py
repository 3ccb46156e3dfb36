"""Lines and types of a run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from uncaged_repair.server.trace import CALLS_WITHOUT_NEWS, SETTLED_CALLS, LineTracer

TEXT = """\
class Node:
    def __init__(self, value):
        self.value = value
        self.next = None

    def last(self):
        return self


def walk(node, limit):
    count = 0
    while node is not None and count < limit:
        count += 1
        node = node.next
    if count > 5:
        return -1
    return count
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """The file; whatever traced before goes on afterwards."""
    before = sys.gettrace()
    path = tmp_path / "walking.py"
    path.write_text(TEXT)
    yield path
    sys.settrace(before)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("walking", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(path: Path, lines: LineTracer) -> Callable[[], object]:
    module = load(path)

    def traced() -> object:
        lines.start()
        found = module.walk(module.Node(1), 3)
        lines.stop()
        return found

    return traced


@pytest.mark.parametrize("types", [True, False])
def test_the_executed_lines_are_noted(place: Path, types: bool) -> None:
    """Either way of tracing records exactly the executed lines of the files of interest."""
    lines = LineTracer({str(place): "walking.py"}, types, None)
    assert run(place, lines)() == 1
    assert lines.report()["lines"] == {"walking.py": [2, 3, 4, 10, 11, 12, 13, 14, 15, 17]}


def test_each_start_begins_anew(place: Path) -> None:
    lines = LineTracer({str(place): "walking.py"}, False, None)
    again = run(place, lines)
    assert again() == again()
    first = lines.report()
    again()
    assert lines.report() == first


def test_only_lines_of_interest_are_reported(place: Path) -> None:
    lines = LineTracer(
        {str(place): "walking.py"}, False, {"walking.py": [12, 16, 17], "other.py": [1]}
    )
    run(place, lines)()
    assert lines.report() == {"lines": {"walking.py": [12, 17]}}


def test_the_types_of_variables_and_attributes_are_noted(place: Path) -> None:
    lines = LineTracer({str(place): "walking.py"}, True, None)
    run(place, lines)()
    report = lines.report()
    held = {(name, line): set(types) for _, line, name, types in report["locals"]}
    assert held["count", 10] == {"int"}
    assert held["node", 10] == {"NoneType"}
    assert report["attributes"]["Node"]["value"] == ["int"]
    assert report["attributes"]["Node"]["last"] == ["method"]


def test_a_passing_test_that_repeats_its_calls_is_traced_only_at_first(tmp_path: Path) -> None:
    """A function's calls are traced until many of them have run no new line; all those of a failing
    test are.
    """
    path = tmp_path / "walking.py"
    path.write_text(
        "import sys\n"
        "def walk(node, limit):\n"
        "    if limit == 0:\n"
        "        return 0\n"
        "    return int(sys._getframe().f_trace is not None)\n"
    )
    module = load(path)
    calls = 4 * CALLS_WITHOUT_NEWS
    traced = {}
    before = sys.gettrace()
    for only in ({"walking.py": [3, 4, 5]}, None):
        lines = LineTracer({str(path): "walking.py"}, only is None, only)
        lines.start()
        first = sum(module.walk(None, 1) for _ in range(CALLS_WITHOUT_NEWS // 2))
        module.walk(None, 0)
        traced[only is None] = first + sum(module.walk(None, 1) for _ in range(calls))
        lines.stop()
        sys.settrace(before)
        assert set(lines.report()["lines"]["walking.py"]) >= {3, 4, 5}
    everything = CALLS_WITHOUT_NEWS // 2 + calls
    assert traced[True] == everything
    # the call after the new line is the one that notices it
    assert traced[False] == CALLS_WITHOUT_NEWS // 2 + 1 + CALLS_WITHOUT_NEWS


@pytest.mark.parametrize("only", [{"walking.py": [2, 3]}, None])
def test_a_long_passing_test_is_not_traced_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: dict[str, list[int]] | None
) -> None:
    """The trace function is removed once all functions that are called have settled, as it costs
    the calls of libraries, too; a call of another function before that keeps it.
    """
    path = tmp_path / "walking.py"
    path.write_text("def walk():\n    return 1\n\ndef other():\n    return 2\n")
    module = load(path)
    before = sys.gettrace()
    monkeypatch.delattr(sys, "monitoring", raising=False)
    lines = LineTracer({str(path): "walking.py"}, False, only)
    lines.start()
    for _ in range(CALLS_WITHOUT_NEWS + SETTLED_CALLS - 1):
        module.walk()
    module.other()
    for _ in range(SETTLED_CALLS - 1):
        module.walk()
    traced = sys.gettrace() is not None
    module.walk()
    traced_on = sys.gettrace() is not None
    lines.stop()
    sys.settrace(before)
    assert (traced, traced_on) == (True, only is None)
