"""Edits compared by replaying the calls of tests, in the sandbox."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from uncaged_repair.harness.harness import Harness
from uncaged_repair.harness.host import Comparison, Host, RunRequest
from uncaged_repair.harness.results import RunReport
from uncaged_repair.task import RepairLimits, Task

pytestmark = pytest.mark.slow


class Repository(Protocol):
    @property
    def top(self) -> Path: ...
    @property
    def scratch(self) -> Path: ...


Open = Callable[[Mapping[str, str]], Host]


def silent(message: str, *, candidates: int | None = None, file: str | None = None) -> None:
    """Drop progress: there are no followers."""


@pytest.fixture
def open_host(
    make_repository: Callable[[Mapping[str, str | bytes]], Repository],
) -> Iterator[Open]:
    """A host on a repository with these files, its tests collected."""
    opened: list[Harness] = []

    def make(files: Mapping[str, str]) -> Host:
        made = make_repository(dict(files))
        task = Task(
            role="coder",
            worktree=made.top,
            scratch=made.scratch,
            text="",
            steps=(),
            environment={"PATH": os.environ["PATH"]},
            test_command=None,
            sandbox="auto",
            limits=RepairLimits(),
            wall_s=60.0,
        )
        harness = Harness(task, silent)
        opened.append(harness)
        harness.__enter__()
        assert harness.collect().end == "finished"
        return harness.host

    yield make
    for harness in opened:
        harness.__exit__()


def compare(host: Host, edits: list[str], *, cpu_s: float = 20.0) -> RunReport:
    """Compare new contents of m.py on the calls of the test f."""
    return host.run(
        RunRequest(
            tests=["test_m.py::test_f"],
            cpu_s=6.0,
            wall_s=60.0,
            total_s=100.0,
            stop=True,
            compare=Comparison(edits=[("m.py", text.encode()) for text in edits], cpu_s=cpu_s),
        )
    )


def digests(report: RunReport, edit: int) -> dict[str, str]:
    """Return the outcome of an edit by the text of the arguments."""
    return {
        entry.arguments: outcome.digest
        for call in report.compared
        for entry in call.inputs
        if (outcome := entry.outcomes[edit]) is not None
    }


def test_edits_that_agree_on_the_tests_differ_on_perturbed_arguments(open_host: Open) -> None:
    """Two edits that give the same for the test's own call give different results for a changed
    argument; two spellings of the same edit never do.
    """
    source = "def f(a, b):\n    return a + b\n"
    host = open_host(
        {"m.py": source, "test_m.py": "import m\ndef test_f(): assert m.f(2, 2) == 4\n"}
    )
    report = compare(host, [source.replace("a + b", text) for text in ("a * b", "b * a", "a + a")])
    first, spelling, other, original = (digests(report, edit) for edit in range(4))
    assert first == spelling
    assert first["a=2, b=2"] == other["a=2, b=2"] == original["a=2, b=2"]
    assert first["a=2, b=3"] != other["a=2, b=3"] != original["a=2, b=3"]


def test_changed_arguments_and_output_belong_to_the_outcome(open_host: Open) -> None:
    """An edit that returns the same but changes its argument, or prints something else, differs."""
    source = "def f(items):\n    print(1)\n    return len(items)\n"
    host = open_host(
        {"m.py": source, "test_m.py": "import m\ndef test_f(): assert m.f([3]) == 1\n"}
    )
    changed = source.replace("print(1)", "items.append(1) or 0; return len(items) - 1")
    report = compare(host, [source.replace("(1)", "(2)"), source.replace("(1)", "(3)"), changed])
    found = [digests(report, edit)["items=[3]"] for edit in range(4)]
    assert len(set(found)) == 4


def test_a_method_is_replayed_on_its_object(open_host: Open) -> None:
    """Attributes of the object are perturbed, and a change of one input never reaches the next."""
    source = """\
class Box:
    def __init__(self):
        self.size = 3
        self.log = []

    def f(self):
        self.log.append(1)
        return self.size * len(self.log)
"""
    test = "import m\ndef test_f():\n    box = m.Box()\n    assert box.f() == 3\n    assert box.log == [1]\n"
    host = open_host({"m.py": source, "test_m.py": test})
    report = compare(
        host,
        [source.replace("return self.size", text) for text in ("return 3", "return 1 * self.size")],
    )
    assert report.outcomes == {"test_m.py::test_f": "passed"}
    constant, right = digests(report, 0), digests(report, 1)
    assert constant["self=Box(log=[], size=3)"] == right["self=Box(log=[], size=3)"]
    changed = [key for key in constant if key.endswith("self.size=4")]
    assert changed
    assert all(constant[key] != right[key] for key in changed)


HOSTILE = {
    "equal to everything": "class L:\n    def __eq__(self, other): return True\n    __hash__ = None\n",
    "text that raises": "class L:\n    def __repr__(self): raise ValueError\n    __str__ = __repr__\n",
    "copy that raises": "class L:\n    def __deepcopy__(self, memo): raise SystemExit\n",
    "copy that never ends": "class L:\n    def __deepcopy__(self, memo):\n        while True: pass\n",
    "copy that ends the process": "import os\nclass L:\n    def __deepcopy__(self, memo): os._exit(0)\n",
    "attribute that raises": "class L:\n    def __getattribute__(self, name): raise KeyError(name)\n",
    "a class that lies": "class L:\n    @property\n    def __class__(self): return int\n",
    "endless structure": "class L:\n    def __init__(self): self.me = [self] * 100_000\n",
    "a lock": "import threading\nclass L:\n    def __init__(self): self.lock = threading.Lock()\n",
    "an open file": "class L:\n    def __init__(self): self.file = open(__file__)\n",
    "a generator": "class L:\n    def __init__(self): self.numbers = iter(lambda: 1, 2)\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_value_does_not_hurt_the_comparison(open_host: Open, kind: str) -> None:
    """The test passes as ever, and the run ends in time, whatever its values are."""
    source = f"{HOSTILE[kind]}\ndef f(value, number):\n    return [value, number + 1]\n"
    test = "import m\ndef test_f(): assert m.f(m.L(), 1)[1] == 2\n"
    host = open_host({"m.py": source, "test_m.py": test})
    report = compare(host, [source.replace("number + 1", text) for text in ("number * 2", "1 + 1")])
    assert report.end == "finished"
    assert report.outcomes == {"test_m.py::test_f": "passed"}
    assert report.cpu_s < 20


ENDING = {
    "os._exit": "import os; os._exit(0)",
    "sys.exit": "import sys; sys.exit(3)",
    "a signal": "import os; os.kill(os.getpid(), 9)",
    "recursion": "f(number)",
    "an endless loop": "[0 for _ in iter(int, 1)]",
    "a huge result": "number = [0] * 10**8",
    "a closed descriptor": "import os; os.closerange(3, 100)",
    "a lasting thread": "import threading as t; t.Thread(target=t.Event().wait).start()",
    "a child process": "import os; os.fork()",
}


@pytest.mark.parametrize("kind", ENDING)
def test_a_replayed_call_that_ends_its_process_is_an_outcome(open_host: Open, kind: str) -> None:
    """Other inputs are compared as ever, and the test does not notice."""
    source = "def f(number):\n    return number + 1\n"
    host = open_host({"m.py": source, "test_m.py": "import m\ndef test_f(): assert m.f(1) == 2\n"})
    ending = source.replace("    return", f"    if number == 2: {ENDING[kind]}\n    return")
    report = compare(host, [source.replace("number + 1", "number * 2"), ending])
    assert report.outcomes == {"test_m.py::test_f": "passed"}
    assert digests(report, 0)["number=1"] == digests(report, 1)["number=1"]
    assert digests(report, 0)["number=0"] != digests(report, 1)["number=0"]


def test_an_unsteady_input_is_left_out(open_host: Open) -> None:
    """A result that differs between two runs of one edit says nothing about another edit."""
    source = "import os\ndef f(number):\n    return [number, os.getpid() if number > 1 else 0]\n"
    host = open_host(
        {"m.py": source, "test_m.py": "import m\ndef test_f(): assert m.f(1)[0] == 1\n"}
    )
    report = compare(host, [source.replace("[number,", text) for text in ("[1,", "[number + 0,")])
    assert set(digests(report, 0)) >= {"number=1", "number=0", "number=-1"}
    assert "number=2" not in digests(report, 0)


def test_the_limit_on_processor_time_ends_the_comparison(open_host: Open) -> None:
    """Calls after the limit are not replayed, and the test runs to its end."""
    source = "def f(n):\n    for _ in range(10**6): pass\n    return n\n"
    test = "import m\ndef test_f(): assert [m.f(n) for n in range(20)] == list(range(20))\n"
    host = open_host({"m.py": source, "test_m.py": test})
    edits = [source.replace("return n", text) for text in ("return n + 0", "return n * 1")]
    report = compare(host, edits, cpu_s=0.8)
    assert report.outcomes == {"test_m.py::test_f": "passed"}
    assert len(report.compared) <= 2


def test_an_edit_of_a_called_function_is_marked_as_indirect(open_host: Open) -> None:
    """The outer function is replayed, and the inner edit is seen through it."""
    source = "def f(n):\n    return g(n) + 1\ndef g(n):\n    return n\n"
    host = open_host({"m.py": source, "test_m.py": "import m\ndef test_f(): assert m.f(1) == 2\n"})
    edits = [source.replace("g(n) + 1", "n + n"), source.replace("return n\n", "return n * n\n")]
    report = compare(host, edits)
    assert {call.function for call in report.compared} == {"f"}
    for entry in report.compared[0].inputs:
        outer, inner = entry.outcomes[:2]
        assert outer is not None
        assert inner is not None
        assert (outer.direct, inner.direct) == (True, False)
