"""The verdict on a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import pytest

pytestmark = pytest.mark.slow


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
FILES = {
    "code_of.py": "def twice(x):\n    return x + 2\n",
    "test_code.py": "from code_of import twice\n\n\ndef test_five():\n    assert twice(5) == 10\n",
}


def write(made: Repository, path: str, text: str) -> None:
    (made.top / path).write_text(text)


def test_a_change_with_which_all_tests_pass_is_approved(make_repository: Make) -> None:
    made = make_repository(FILES)
    write(made, "code_of.py", "def twice(x):\n    return x * 2\n")
    played = made.play("reviewer")
    assert played.meta == {"status": "approved", "issues": []}
    assert "1 of 1 test pass" in played.text
    assert "Changed: code_of.py." in played.text


def test_a_failing_test_is_an_issue_by_its_name(make_repository: Make) -> None:
    made = make_repository(FILES)
    write(made, "code_of.py", "def twice(x):\n    return x * 3\n")
    meta = made.play("reviewer").meta
    assert meta["status"] == "rejected"
    assert "test_code.py::test_five fails" in str(meta["issues"])


def test_a_bent_test_is_an_issue_although_all_pass(make_repository: Make) -> None:
    made = make_repository(FILES)
    write(made, "test_code.py", "def test_five():\n    pass\n")
    meta = made.play("reviewer").meta
    assert meta["status"] == "rejected"
    assert "test_code.py: a test file was changed" in str(meta["issues"])


def test_nothing_changed_is_an_issue(make_repository: Make) -> None:
    assert made_issues(make_repository(FILES))[0] == "nothing was changed"


def test_the_change_is_seen_beside_the_snapshot_before_the_first_coder(
    make_repository: Make,
) -> None:
    """Also when another agent has committed meanwhile; and what the person had changed before is
    not the coder's doing.
    """
    made = make_repository(FILES)
    write(
        made,
        "test_code.py",
        FILES["test_code.py"] + "\n\ndef test_zero():\n    assert twice(0) == 0\n",
    )
    made.git("commit", "-qam", "the person's own test")
    made.steps.append(
        {
            "role": "planner",
            "meta": {"status": "planned"},
            "snapshot": made.git("rev-parse", "HEAD"),
        }
    )
    write(made, "code_of.py", "def twice(x):\n    return x * 2\n")
    made.git("commit", "-qam", "an agent that commits by itself")
    made.steps.append(
        {"role": "coder", "meta": {"status": "all-done"}, "snapshot": made.git("rev-parse", "HEAD")}
    )
    played = made.play("reviewer")
    assert played.meta == {"status": "approved", "issues": []}
    assert "Changed: code_of.py." in played.text


def test_a_snapshot_of_the_coder_is_not_what_the_change_is_compared_with(
    make_repository: Make,
) -> None:
    made = make_repository(FILES)
    write(made, "code_of.py", "def twice(x):\n    return x * 2\n")
    made.steps.append(
        {"role": "coder", "meta": {"status": "all-done"}, "snapshot": made.git("stash", "create")}
    )
    assert made.play("reviewer").meta["status"] == "approved"


def test_tests_that_can_no_longer_be_collected_are_an_issue(make_repository: Make) -> None:
    made = make_repository(FILES)
    write(made, "code_of.py", "import no_such_package\n")
    assert any("cannot be collected" in issue for issue in made_issues(made))


def made_issues(made: Repository) -> list[str]:
    issues = made.play("reviewer").meta["issues"]
    assert isinstance(issues, list)
    return issues
