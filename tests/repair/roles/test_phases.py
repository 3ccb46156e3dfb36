"""Planned phases, ours and those of others."""

from __future__ import annotations

from pathlib import Path

from uncaged_repair.roles.phases import Phase, acceptance_of, open_phases
from uncaged_repair.task import RepairLimits, Task


def task(*steps: dict[str, object]) -> Task:
    return Task(
        role="coder",
        worktree=Path("/w"),
        scratch=Path("/s"),
        text="",
        steps=steps,
        environment={},
        test_command=None,
        sandbox="auto",
        limits=RepairLimits(),
        wall_s=1.0,
    )


def planned(*names: str) -> dict[str, object]:
    phases = [
        {"name": name, "description": "d", "acceptance": acceptance_of([f"t.py::{name}"])}
        for name in names
    ]
    return {"role": "planner", "meta": {"status": "planned", "phases": phases}}


def coded(*names: str) -> dict[str, object]:
    return {"role": "coder", "meta": {"status": "phase-done", "completedPhases": list(names)}}


def test_phases_are_open_until_a_coder_completed_them() -> None:
    assert [
        phase.name for phase in open_phases(task(planned("a", "b", "c"), coded("a"), coded("c")))
    ] == ["b"]


def test_the_last_plan_counts() -> None:
    assert [phase.name for phase in open_phases(task(planned("a"), planned("b")))] == ["b"]


def test_steps_without_data_do_no_harm() -> None:
    assert open_phases(task({"role": "planner"}, {"role": "coder", "meta": 3})) == []


def test_a_phase_speaks_of_its_tests_and_not_of_longer_names() -> None:
    """A test's name counts as a whole word: not as the beginning of another one, nor inside a
    path.
    """
    phase = Phase(name="p", text=acceptance_of(["t.py::test_a", "t.py::test_b[1, 2]"]), ours=True)
    names = ["t.py::test_a", "t.py::test_ab", "t.py::test_a[1]", "t.py::test_b[1, 2]", "py::test_a"]
    assert phase.tests_among(names) == ("t.py::test_a", "t.py::test_b[1, 2]")


def test_our_phase_is_done_when_its_tests_pass_another_planner_s_when_all_do() -> None:
    ours = Phase(name="p", text=acceptance_of(["t.py::test_a"]), ours=True)
    theirs = Phase(name="p", text="Make page() count from one; t.py::test_a passes.", ours=False)
    assert not ours.open_with(["t.py::test_b"])
    assert theirs.open_with(["t.py::test_b"])
    assert not theirs.open_with([])


def test_a_long_acceptance_is_cut_short() -> None:
    assert acceptance_of([f"t{number}" for number in range(100)]).endswith("t29, and 70 more")
