"""Suspects of a failing run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncaged_repair.edits.spans import SourceFile, read_source
from uncaged_repair.harness.baseline import Baseline
from uncaged_repair.harness.results import Collected, Frame, Line, TestResult
from uncaged_repair.localise.ranking import (
    BY_READ,
    MAX_IMPORTED,
    MAX_LINES,
    groups_of,
    suspicion_of,
)

RATES = b"""\
RATES = {
    "a": 1,
    "b": 2,
}
UNUSED = 3


class Till:
    opening = 4

    def total(self, rows, rate=RATES["a"]):
        return sum(rows) * rate * RATES["b"]

    def other(self):
        return self.opening
"""


def failing(name: str, lines: Mapping[str, Sequence[int]], *frames: Frame) -> TestResult:
    return TestResult(
        name=name,
        outcome="failed",
        cpu_s=0.001,
        error=None,
        frames=frames,
        lines={path: frozenset(numbers) for path, numbers in lines.items()},
        held=(),
        attributes={},
    )


def measured(
    results: Sequence[TestResult],
    passed: Mapping[str, frozenset[Line]],
    imported: tuple[str, ...] = (),
) -> Baseline:
    names = (*(result.name for result in results), *passed)
    return Baseline(
        collected=Collected(
            tests=names, errors=(), root="", imported=imported, called=(), end="finished"
        ),
        outcomes={name: "passed" if name in passed else "failed" for name in names},
        times_s={},
        failing={result.name: result for result in results},
        unsteady=(),
        passed=passed,
    )


def suspicion(files: Mapping[str, bytes], baseline: Baseline, text: str = "") -> dict[Line, float]:
    sources = {path: read_source(path, data) for path, data in files.items()}

    def read(path: str) -> SourceFile | None:
        return sources.get(path)

    return suspicion_of(baseline, list(baseline.failing), read, text, list(files))


def test_a_table_is_as_suspicious_as_the_lines_that_use_it() -> None:
    """Lines that run on import and bind a name that a suspicious line uses come before those that
    bind another; the decorators and defaults of a suspected function count, too.
    """
    baseline = measured([failing("t::test_x", {"till.py": [12]})], {"t::test_y": frozenset()})
    found = suspicion({"till.py": RATES}, baseline)
    assert found["till.py", 12] == 1.0
    assert found["till.py", 3] == found["till.py", 1] == 0.5
    assert found["till.py", 3] > found["till.py", 5] > 0
    assert ("till.py", 11) in found


def test_a_table_of_another_module_is_suspected_by_its_name() -> None:
    """The constant that a suspicious line uses may be defined in a module of which no line ran in
    the test.
    """
    files = {
        "shop/sums.py": b"from .rates import RATE\n\ndef total(a):\n    return a * RATE\n",
        "shop/rates.py": b"OTHER = 1\nRATE = 2\n",
    }
    baseline = measured(
        [failing("t::test_x", {"shop/sums.py": [4]})],
        {"t::test_y": frozenset(), "t::test_z": frozenset()},
        imported=tuple(files),
    )
    found = suspicion(files, baseline)
    assert found["shop/rates.py", 2] > found["shop/rates.py", 1] > 0


def test_a_long_test_leaves_the_lines_that_run_on_import_in() -> None:
    """A failing test that runs more lines than are looked at does not push constants out."""
    body = "".join(f"    a += RATE + {number}\n" for number in range(2 * MAX_LINES))
    files = {"long.py": f"RATE = 1\ndef f(a):\n{body}    return a\n".encode()}
    lines = range(3, 2 * MAX_LINES + 4)
    found = suspicion(files, measured([failing("t::test_x", {"long.py": lines})], {}))
    assert ("long.py", 1) in found
    assert MAX_LINES < len(found) <= MAX_LINES + MAX_IMPORTED


def test_a_function_that_the_test_is_named_after_is_more_suspicious() -> None:
    """The function `total` is suspected before `tot` by a test called test_total_of_rows."""
    files = {"x.py": b"def total(a):\n    return a\ndef tot(a):\n    return a\n"}
    found = suspicion(files, measured([failing("t.py::test_total_of_rows", {"x.py": [2, 4]})], {}))
    assert found["x.py", 2] == 1.0 > found["x.py", 4]


def test_a_line_that_stores_an_attribute_is_nearly_as_suspicious_as_one_that_reads_it() -> None:
    """Of two lines in `__init__`, which every test runs, the one whose attribute the failing test
    alone reads is suspected.
    """
    text = (
        b"class A:\n    def __init__(self, size, name):\n        self.size = None\n"
        b"        self.name = name\n    def wide(self):\n        return self.size > 3\n"
    )
    results = [failing("t::test_x", {"x.py": [3, 4, 6]})]
    passed = {f"t::test_{number}": frozenset({("x.py", 3), ("x.py", 4)}) for number in range(30)}
    found = suspicion({"x.py": text}, measured(results, passed))
    assert found["x.py", 6] == 1.0
    assert found["x.py", 3] == BY_READ > 2 * found["x.py", 4]


def test_failing_tests_with_one_suspect_are_one_group() -> None:
    """Two tests that run the same function, and one that runs another, make two groups."""
    files = {"x.py": b"def f(a):\n    return a\ndef g(a):\n    return a\n"}
    sources = {path: read_source(path, data) for path, data in files.items()}
    results = [
        failing("t::a", {"x.py": [2]}),
        failing("t::b", {"x.py": [4]}),
        failing("t::c", {"x.py": [2]}),
    ]
    assert groups_of(measured(results, {}), sources.get) == [("t::a", "t::c"), ("t::b",)]
