"""The measurement of the repair: its data, its verdicts, its tables, and how it counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.repair.attempt import answers_of
from benchmarks.repair.cases import KINDS, Case, CaseMismatch, Kind, case_of, read_cases
from benchmarks.repair.differential import Comparison, changed_functions
from benchmarks.repair.results import Result, append, percentile, read, render
from benchmarks.repair.sandbox import errors, failures
from benchmarks.repair.verdict import Verdict, as_upstream, verdict_of

ENTRY: dict[str, object] = {
    "name": "lib-1",
    "library": "lib",
    "release": "lib-1.0",
    "file": "lib.py",
    "line": 2,
    "released": "two\n",
    "broken": "2\n",
    "failing": ["test_lib.py::test_a"],
}


def case(**more: object) -> Case:
    return case_of("fixes", {**ENTRY, **more})


def comparison(
    *, compared: int = 100, differing: int = 0, still_failing: tuple[str, ...] = ()
) -> Comparison:
    return Comparison(
        functions=("f",),
        compared=compared,
        differing=differing,
        unreadable=0,
        still_failing=still_failing,
    )


def result(
    name: str, verdict: Verdict, *, edit: str | None = "comparison", cpu_s: float = 4.0
) -> Result:
    return Result(
        name=name,
        kind="fixes",
        verdict=verdict,
        edit=edit,
        rank=1 if edit else None,
        candidates=10,
        tried=3,
        exit_code=0,
        cpu_s=cpu_s,
        wall_s=9.0,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_data_files_are_well_formed(kind: Kind) -> None:
    """Each case has a place, a text that differs, and a test that fails; a name occurs once."""
    cases = read_cases(kind)
    assert len({one.name for one in cases}) == len(cases)
    for one in cases:
        assert one.released != one.broken, one.name
        assert one.failing, one.name
        assert one.release.rpartition("-")[0].lower().replace("_", "-") == one.library, one.name
        assert one.line >= 1, one.name
        assert not one.file.startswith("/"), one.name
        assert ("http" in one.released + one.broken) is False, one.name
        assert max(len(text.splitlines()) for text in (one.released, one.broken)) <= 3, one.name


def test_a_library_has_at_most_two_fixes() -> None:
    """The fixes of one library are no more than two, so none decides the result."""
    libraries = [one.library for one in read_cases("fixes")]
    assert max(libraries.count(name) for name in libraries) <= 2
    assert libraries == sorted(libraries)
    assert len(libraries) <= 40


def test_mutants_are_of_three_libraries_without_a_fix() -> None:
    """There are twenty of each library; a library in both sets would count twice."""
    libraries = [one.library for one in read_cases("mutants")]
    assert sorted(map(libraries.count, set(libraries))) == [20, 20, 20]
    fixes, mutants = ({one.library for one in read_cases(kind)} for kind in KINDS)
    assert fixes & mutants == set()


def test_a_broken_place_replaces_its_lines_only() -> None:
    """A place is broken at the recorded line, whether text is changed, lacking or added."""
    text = "one\ntwo\nthree\n"
    assert case().break_text(text) == "one\n2\nthree\n"
    assert case(broken="").break_text(text) == "one\nthree\n"
    assert case(released="").break_text(text) == "one\n2\ntwo\nthree\n"


def test_another_text_at_the_place_is_refused() -> None:
    """A release whose file differs from the recorded one is not measured."""
    with pytest.raises(CaseMismatch, match=r"lib-1: lib\.py:2 of lib-1\.0 differs"):
        case().break_text("one\nTwo\nthree\n")


def test_a_prompt_names_tests_where_others_fail_in_the_release() -> None:
    """A release with failing tests of its own cannot be made green by one edit."""
    assert case().prompt == "make the tests pass"
    assert case(already=["test_b"]).prompt == "make the tests pass: test_lib.py::test_a"


@pytest.mark.parametrize(
    ("exit_code", "committed", "upstream", "compared", "verdict"),
    [
        (0, True, True, None, "as upstream"),
        (0, True, False, comparison(), "equal"),
        (0, True, False, comparison(differing=1), "overfit"),
        (0, True, False, comparison(compared=3, differing=1), "overfit"),
        (0, True, False, comparison(still_failing=("test_a",)), "overfit"),
        (0, True, False, comparison(compared=19), "unknown"),
        (0, True, False, None, "unknown"),
        (3, False, False, None, "nothing"),
        (3, True, True, None, "error"),
        (0, False, False, None, "error"),
        (70, False, False, None, "error"),
        (-1, False, False, None, "error"),
    ],
)
def test_a_verdict_follows_from_exit_code_commit_and_comparison(
    *,
    exit_code: int,
    committed: bool,
    upstream: bool,
    compared: Comparison | None,
    verdict: Verdict,
) -> None:
    """A commit is right only if it is upstream's or enough outcomes are equal; a failure is honest
    only with exit code 3 and without a commit.
    """
    found = verdict_of(
        exit_code=exit_code, committed=committed, upstream=upstream, comparison=compared
    )
    assert found == verdict


def test_upstreams_repair_is_recognised_by_the_syntax_tree() -> None:
    """Spaces, quotes and comments do not matter; a changed file that upstream does not change
    does.
    """
    released = {"a.py": "x = 'a'\n", "b.py": "y = 1\n"}
    assert as_upstream(released, {"a.py": 'x = ("a")  # here\n'})
    assert not as_upstream(released, {"a.py": "x = 'b'\n"})
    assert not as_upstream(released, {"a.py": "x = 'a'\n", "b.py": "y = 2\n"})
    assert not as_upstream(released, {"a.py": "x = 'a'\n", "new.py": ""})
    assert not as_upstream(released, {"a.py": None})
    assert not as_upstream(released, {})


CODE = """
LIMIT = 1

def f(a):
    def inner(): return a
    return inner

class C:
    @property
    def p(self): return 1
    @p.setter
    def p(self, value): pass
    class D:
        def m(self): return 2
"""


def test_changed_functions_are_the_outermost_ones() -> None:
    """An inner function cannot be called alone, so the one around it is compared."""
    assert changed_functions(CODE, CODE.replace("return a", "return -a")) == ["f"]
    assert changed_functions(CODE, CODE.replace("value): pass", "value): return 1")) == ["C.p"]
    assert changed_functions(CODE, CODE.replace("return 2", "return 3")) == ["C.D.m"]
    assert changed_functions(CODE, CODE) == []


def test_a_change_outside_of_functions_concerns_all_of_them() -> None:
    """A constant may be used anywhere in its module."""
    every = ["f", "C.p", "C.D.m"]
    assert changed_functions(CODE, CODE.replace("LIMIT = 1", "LIMIT = 2")) == every
    assert changed_functions(CODE, CODE.replace("class C:", "class C(Exception):")) == every


def test_an_interrupted_run_keeps_its_results(tmp_path: Path) -> None:
    """The results of finished cases are read again; a torn line is measured anew."""
    path = tmp_path / "results.jsonl"
    append(path, result("a-1", "nothing"))
    append(path, result("b-1", "equal"))
    append(path, result("a-1", "as upstream"))
    with path.open("a") as file:
        file.write('{"name": "c-1", "kin')
    assert [(one.name, one.verdict) for one in read(path)] == [
        ("a-1", "as upstream"),
        ("b-1", "equal"),
    ]


def test_the_table_counts_what_one_edit_can_repair_apart() -> None:
    """The reach is judged over those cases alone, and each case has a line."""
    table = render(
        [
            result("a-1", "as upstream", cpu_s=2.0),
            result("a-2", "equal", cpu_s=4.0),
            result("b-1", "overfit", cpu_s=30.0),
            result("b-2", "nothing", edit=None, cpu_s=70.0),
        ]
    )
    assert "| fixes | 4 | 1 | 1 | 1 | 0 | 1 | 0 | 17.0 | 70.0 |" in table
    assert "| fixes, one edit repairs it | 3 | 1 | 1 | 1 | 0 | 0 | 0 | 4.0 | 30.0 |" in table
    assert "67 % right (reach 75 %), 33.3 % overfit (reach 3 %), median 4.0 s" in table
    assert "| b-2 | nothing | no | 3 | 70.0 |  |" in table


def test_a_percentile_is_one_of_the_values() -> None:
    """The ninetieth percentile of ten values is the ninth."""
    assert percentile(range(10, 0, -1), 0.9) == 9
    assert percentile([5.0], 0.9) == 5.0


def test_answers_are_read_from_the_records_of_threads(tmp_path: Path) -> None:
    """Only answers of roles count, in their order."""
    logs = tmp_path / "logs" / "HASH"
    logs.mkdir(parents=True)
    records = [
        {"format": 1, "name": "solve-issue"},
        {"seq": 1, "intent": {"role": {"name": "planner"}}},
        {"seq": 1, "role": "planner", "content": "a plan"},
        {"seq": 2, "role": "coder", "content": "Tried 3 candidates in 1.0 s of processor time."},
    ]
    (logs / "A.data.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert answers_of(tmp_path) == [
        "[planner] a plan",
        "[coder] Tried 3 candidates in 1.0 s of processor time.",
    ]


def test_failures_and_their_errors_are_read_from_pytests_summary() -> None:
    """The names of tests, and each exception once; an assertion's text has none."""
    output = (
        "...\nFAILED t.py::A::test_a[x-1] - NameError: name 'six' is not defined\n"
        "FAILED t.py::test_b - NameError: name 'six' is not defined\n"
        "FAILED t.py::test_c - assert 1 == 2\n"
        "ERROR t.py::test_d - lib.errors.LimitError: too much\n"
        "4 failed in 1.0s\n"
    )
    assert failures(output) == [
        "t.py::A::test_a[x-1]",
        "t.py::test_b",
        "t.py::test_c",
        "t.py::test_d",
    ]
    assert errors(output) == [
        ("NameError", "name 'six' is not defined"),
        ("LimitError", "too much"),
    ]
