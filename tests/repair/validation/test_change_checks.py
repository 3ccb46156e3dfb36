"""Checks for changes that weaken tests or special-case them."""

from __future__ import annotations

import pytest
from uncaged_repair.validation.change_checks import (
    FileChange,
    check_change,
    failure_issues,
    newly_unused_names,
)


def judged(
    path: str, before: str | None, after: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    change = FileChange(
        path=path,
        before=None if before is None else before.encode(),
        after=None if after is None else after.encode(),
    )
    found = check_change({path: change})
    return found.issues, found.remarks


@pytest.mark.parametrize("after", ["def test_a(): pass\n", None])
@pytest.mark.parametrize(
    "path",
    [
        "tests/test_a.py",
        "test_a.py",
        "pkg/a_test.py",
        "conftest.py",
        "tests/data.json",
        "pytest.ini",
    ],
)
def test_a_touched_test_file_blocks(path: str, after: str | None) -> None:
    """Whatever decides how tests run belongs to the tests."""
    issues, _ = judged(path, "def test_a(): assert f()\n", after)
    assert len(issues) == 1
    assert path in issues[0]


def test_a_new_test_is_no_offence_and_a_new_conftest_is() -> None:
    assert judged("tests/test_new.py", None, "def test_a(): pass\n") == (
        (),
        ("tests/test_new.py is a new test",),
    )
    assert judged("tests/conftest.py", None, "collect_ignore = ['test_a.py']\n")[0]


@pytest.mark.parametrize(
    "after",
    [
        "import os\nX = os.environ.get('PYTEST_CURRENT_TEST')\n",
        "import sys, pytest\n",
        "from unittest import mock\n",
        "def f(:\n",
    ],
)
def test_code_that_knows_of_tests_or_does_not_parse_blocks(after: str) -> None:
    assert judged("pkg/a.py", "X = 1\n", after)[0]


def test_a_plain_change_passes() -> None:
    assert judged("pkg/a.py", "def f(a):\n    return a + 1\n", "def f(a):\n    return a - 1\n") == (
        (),
        (),
    )


def test_a_change_that_only_deletes_is_remarked() -> None:
    issues, remarks = judged(
        "pkg/a.py", "def f(a):\n    a += 1\n    return a\n", "def f(a):\n    return a\n"
    )
    assert issues == ()
    assert remarks == ("pkg/a.py: the change only deletes",)


@pytest.mark.parametrize("outcome", ["failed", "error", "timeout", "died"])
def test_a_test_that_does_not_pass_blocks(outcome: str) -> None:
    assert failure_issues({"a": "passed", "t": outcome}) == [f"t fails ({outcome}); make it pass"]


def test_a_green_suite_does_not_block() -> None:
    assert failure_issues({"a": "passed", "b": "skipped", "c": "xfailed"}) == []


def test_many_failures_are_summed_up() -> None:
    assert (
        failure_issues({f"t{number}": "failed" for number in range(20)})[-1]
        == "and 12 more tests fail"
    )


@pytest.mark.parametrize(
    ("after", "count"),
    [
        ("return total / len(xs)", 0),
        ("return len(xs)", 1),
        ("return 2", 2),
        ("return total + total - len(xs)", 0),
    ],
)
def test_variables_that_are_computed_for_nothing_are_counted(after: str, count: int) -> None:
    """An edit after which a variable is no longer used is suspicious: it passes the tests by
    ignoring something.
    """
    function = "def mean(xs):\n    total = sum([1, 2])\n    {}\n"
    assert (
        newly_unused_names(
            function.format("return total // len(xs)").encode(), function.format(after).encode()
        )
        == count
    )
