"""The commit and its message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from uncaged_repair.roles.committer import message
from uncaged_repair.task import RepairLimits, Task


class Played(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def meta(self) -> Mapping[str, object]: ...


class Repository(Protocol):
    @property
    def top(self) -> Path: ...

    steps: list[dict[str, object]]

    def play(self, role: str) -> Played: ...
    def git(self, *words: str) -> str: ...


Make = Callable[[Mapping[str, str | bytes]], Repository]
STEPS: list[dict[str, object]] = [
    {
        "role": "planner",
        "content": "built-in\n\nRan `python -m pytest`: 2 of 9 tests fail.\n",
        "meta": {"status": "planned"},
    },
    {
        "role": "coder",
        "content": "",
        "meta": {
            "status": "phase-done",
            "summary": "a.py:3 comparison: `<` → `<=`. Tried 7 candidates in 0.5 s.",
        },
    },
    {
        "role": "reviewer",
        "content": "built-in\n\nRan `python -m pytest`: 9 of 9 tests pass.\n",
        "meta": {"status": "approved"},
    },
]


def task(steps: list[dict[str, object]]) -> Task:
    return Task(
        role="committer",
        worktree=Path("/"),
        scratch=Path("/"),
        text="",
        steps=steps,
        environment={},
        test_command=None,
        sandbox="auto",
        limits=RepairLimits(),
        wall_s=60.0,
    )


@pytest.mark.slow
def test_the_change_becomes_one_commit_on_the_branch(make_repository: Make) -> None:
    """Branch and commit are reported; new files are in it, ignored ones and links out of the
    worktree are not; nothing is left.
    """
    made = make_repository({"a.py": "x = 1\n", ".gitignore": "*.log\n"})
    made.git("switch", "-qc", "uncaged/solve-issue/01abc")
    made.steps.extend(STEPS)
    (made.top / "a.py").write_text("x = 2\n")
    (made.top / "größe neu.py").write_text("y = 1\n")
    (made.top / "trace.log").write_text("noise\n")
    (made.top / ".venv").symlink_to("/usr")
    meta = made.play("committer").meta
    assert meta == {
        "status": "committed",
        "branch": "uncaged/solve-issue/01abc",
        "commitSha": made.git("rev-parse", "HEAD"),
    }
    assert made.git("show", "--name-only", "--format=").splitlines() == ["a.py", "größe neu.py"]
    assert made.git("rev-list", "--count", "HEAD") == "2"
    assert made.git("status", "--porcelain") == "?? .venv"


@pytest.mark.slow
def test_hooks_do_not_run_and_the_answer_says_so(make_repository: Make) -> None:
    made = make_repository({"a.py": "x = 1\n"})
    hook = made.top / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (made.top / "a.py").write_text("x = 2\n")
    played = made.play("committer")
    assert played.meta["status"] == "committed"
    assert "Hooks were not run" in played.text


@pytest.mark.slow
def test_an_identity_of_ours_signs_only_where_there_is_no_other(make_repository: Make) -> None:
    made = make_repository({"a.py": "x = 1\n"})
    (made.top / "a.py").write_text("x = 2\n")
    made.play("committer")
    assert (
        made.git("log", "-1", "--format=%an <%ae>")
        == "uncaged-workflow <uncaged-workflow@localhost>"
    )
    made.git("config", "user.name", "Grace")
    made.git("config", "user.email", "grace@example.com")
    (made.top / "a.py").write_text("x = 3\n")
    made.play("committer")
    assert made.git("log", "-1", "--format=%an <%ae>") == "Grace <grace@example.com>"


@pytest.mark.slow
def test_nothing_to_commit_cannot_be_recovered_from(make_repository: Make) -> None:
    meta = make_repository({"a.py": "x = 1\n"}).play("committer").meta
    assert meta["status"] == "unrecoverable"
    assert "nothing" in str(meta["error"])


@pytest.mark.slow
def test_a_branch_that_is_none_cannot_be_committed_to(make_repository: Make) -> None:
    made = make_repository({"a.py": "x = 1\n"})
    made.git("switch", "-q", "--detach")
    (made.top / "a.py").write_text("x = 2\n")
    assert made.play("committer").meta["status"] == "unrecoverable"


def test_the_message_holds_the_evidence() -> None:
    """The message has the tests that failed before, those that pass now, the edit, and the number
    of candidates.
    """
    text = message(task(STEPS), ["a.py"])
    assert text.splitlines()[0] == "Repair a.py"
    for evidence in (
        "2 of 9 tests fail",
        "9 of 9 tests pass",
        "`<` → `<=`",
        "7 candidates",
        "hooks were not run",
    ):
        assert evidence in text


def test_the_message_names_the_repaired_tests_and_how_the_prompt_is_related() -> None:
    """A reader of the log learns which tests were meant, which failing ones were left, what other
    edits pass as well, and what needs a person's eye.
    """
    relation = {"kind": "function", "text": "names the function page"}
    planner: dict[str, object] = {
        "role": "planner",
        "meta": {"phases": [{"name": "repair-1", "relation": relation}], "leftAlone": ["t::other"]},
    }
    coder: dict[str, object] = {
        "role": "coder",
        "meta": {
            "status": "all-done",
            "summary": "a.py:3",
            "repaired": ["t::page"],
            "alternatives": ["3 edits pass all tests; on 4 other calls they behave in 2 ways."],
            "doubts": ["The only edit that passes deletes code"],
        },
    }
    lines = message(task([planner, coder]), ["a.py"]).splitlines()
    for line in (
        "Repaired: t::page.",
        "The prompt names the function page.",
        "Left alone, they fail as before: t::other.",
        "3 edits pass all tests; on 4 other calls they behave in 2 ways.",
        "REVIEW THIS: The only edit that passes deletes code.",
    ):
        assert line in lines


def test_the_subject_is_short_whatever_the_paths_are() -> None:
    assert message(task([]), ["a" * 60, "b" * 60]).splitlines()[0] == "Repair 2 files"
