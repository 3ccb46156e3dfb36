"""Suspicion."""

from __future__ import annotations

import math

from uncaged_repair.harness.results import Frame
from uncaged_repair.localise.spectrum import apply_hints, group_tests, ochiai

A, B, C = ("m.py", 1), ("m.py", 2), ("m.py", 3)


def test_a_line_that_only_failing_tests_run_is_most_suspicious() -> None:
    """Ochiai: failing tests that run the line, over the root of all failing ones times all that run
    it.
    """
    found = ochiai([frozenset({A, B}), frozenset({A})], [frozenset({B, C}), frozenset({B})])
    assert found == {A: 1.0, B: 1 / math.sqrt(2 * 3)}


def test_lines_that_no_failing_test_runs_are_not_suspicious() -> None:
    assert C not in ochiai([frozenset({A})], [frozenset({C})])


def test_the_deepest_frame_counts_more_than_one_above_it() -> None:
    found = apply_hints(
        {A: 0.5, B: 0.5, C: 0.5},
        [[Frame(path="m.py", line=1, function="f"), Frame(path="m.py", line=2, function="g")]],
        {},
        "",
    )
    assert found[B] == 1.0 > found[A] > found[C]


def test_many_failing_tests_raise_a_line_no_more_than_one_does() -> None:
    """Sixty tests that fail at one line leave the lines above it suspicious."""
    stack = [Frame(path="m.py", line=1, function="f"), Frame(path="m.py", line=2, function="g")]
    alone = apply_hints({A: 0.5, B: 0.5, C: 0.5}, [stack], {}, "")
    assert apply_hints({A: 0.5, B: 0.5, C: 0.5}, [stack] * 60, {}, "") == alone
    assert alone[C] > 0.5


def test_words_of_the_issue_raise_functions_and_files_that_they_name() -> None:
    found = apply_hints({A: 0.5, B: 0.5}, [], {A: "total", B: "other"}, "The total is wrong.")
    assert found[A] == 1.0 > found[B]
    found = apply_hints({A: 0.5, ("bill.py", 1): 0.5}, [], {}, "see bill.py")
    assert found["bill.py", 1] == 1.0 > found[A]


def test_nothing_suspected_stays_nothing() -> None:
    assert apply_hints({}, [], {}, "words") == {}


def test_failing_tests_are_grouped_by_what_they_suspect_most() -> None:
    """Tests with a common suspect form one group; the largest group comes first."""
    tops = {"t1": ["m:f"], "t2": ["m:g", "m:f"], "t3": ["m:h"], "t4": []}
    assert group_tests(tops) == [("t1", "t2"), ("t3",), ("t4",)]
