"""Agents that report what is not so, in whole threads on real workers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from testbed.repositories import git, make_repository
from testbed.steering import settle
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.threads.ending import ending_of

pytestmark = pytest.mark.slow

PHASE = {"name": "mend", "description": "d", "acceptance": "a"}
LIE = {"status": "committed", "branch": "x; touch PWNED #", "commitSha": "0" * 40}
HONEST = {"status": "unrecoverable", "error": "there is no identity to commit with"}
CODED = {
    "status": "all-done",
    "completedPhases": ["mend"],
    "filesChanged": ["add.py"],
    "summary": "Mended.",
}
COMMIT = """
git -c user.name=A -c user.email=a@example.org commit -qam mended
printf '{"status": "committed", "branch": "%s", "commitSha": "%s"}' "$(git branch --show-current)" "$(git rev-parse HEAD)"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "r", {"add.py": "1\n"})


def solve(
    store: Store,
    repository: Path,
    *committer: object,
    coder: object = CODED,
    approval: object = None,
    test: str = "grep -q 2 add.py",
) -> tuple[Engine, ThreadId]:
    """Run solve-issue with scripted agents: the committer gives these answers, one after the
    other.
    """
    script = repository.parent / "script.yaml"
    answers = {
        "planner": [{"meta": {"status": "planned", "phases": [PHASE]}}],
        "coder": [{"files": {"add.py": "2\n"}, "meta": coder}, {"meta": CODED}],
        "reviewer": [
            {"meta": approval or {"status": "approved"}},
            {"meta": {"status": "approved"}},
        ],
        "committer": [{"answer": "Committed.", "meta": meta} for meta in committer],
    }
    script.write_text(json.dumps(answers))
    agents = {
        "liar": {"use": "scripted", "file": str(script)},
        "shell": {"use": "command", "argv": ["sh", "-c", COMMIT]},
    }
    roles = {} if committer else {"committer": "shell"}
    store.config_path.write_text(json.dumps({"agents": agents, "agent": "liar", "roles": roles}))
    engine = Engine.open(store.root)
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    options = RunOptions(directory=repository, environment=environment, test_command=test)
    return engine, engine.run("solve-issue", prompt="Mend it.", params={}, options=options)


def test_a_committer_that_reports_a_commit_that_does_not_exist_is_not_believed(
    full_store: Store, repository: Path
) -> None:
    """A branch with a command in its name and forty zeros are sent back twice; then the step fails,
    and no command names the branch.
    """
    engine, thread = solve(full_store, repository, LIE, LIE, LIE)
    assert settle(engine, thread)["status"] == "completed"
    view = engine.thread(thread)
    assert view.summary.success is False
    attempts = [record for record in view.records if "answer" in record]
    assert len(attempts) == 3
    for attempt in attempts:
        assert (
            "branch: 'x; touch PWNED #' is not the branch of the working tree" in attempt["problem"]
        )
        assert f"commitSha: there is no commit '{'0' * 40}'" in attempt["problem"]
    error = next(
        record["error"]
        for record in view.records
        if record.get("error", {}).get("role") == "committer"
    )
    assert error["kind"] == "extraction"
    last = ending_of(view, full_store, Path.cwd())
    assert (last.exit_code, last.branch, last.commands) == (
        3,
        None,
        (
            f"uncaged-workflow thread {thread} --full",
            f"uncaged-workflow fork {thread} --at 3",
            f"uncaged-workflow fix {thread}",
        ),
    )


def test_a_committer_that_corrects_its_report_is_believed(
    full_store: Store, repository: Path
) -> None:
    """A false report is followed by a true one; the thread ends with the true one."""
    engine, thread = solve(full_store, repository, LIE, HONEST)
    assert settle(engine, thread)["status"] == "completed"
    view = engine.thread(thread)
    assert view.end is not None
    assert view.end["result"]["data"]["status"] == "unrecoverable"
    assert engine.verify(thread).ok


def test_a_commit_that_was_made_is_reported(full_store: Store, repository: Path) -> None:
    """An honest committer needs one answer, and its branch and commit are what the result names."""
    engine, thread = solve(full_store, repository)
    assert settle(engine, thread)["status"] == "completed"
    view = engine.thread(thread)
    assert view.end is not None
    data = view.end["result"]["data"]
    assert git(repository, "rev-parse", data["branch"]).strip() == data["commitSha"]
    assert [record for record in view.records if "answer" in record] == []


def test_a_coder_that_names_files_it_did_not_change_is_asked_again(
    full_store: Store, repository: Path
) -> None:
    """A path that is unchanged is named in what is sent back."""
    engine, thread = solve(
        full_store, repository, HONEST, coder={**CODED, "filesChanged": ["add.py", "never.py"]}
    )
    assert settle(engine, thread)["status"] == "completed"
    [attempt] = [record for record in engine.thread(thread).records if "answer" in record]
    assert attempt["problem"].startswith(
        "filesChanged: not changed, as git sees it: 'never.py' (report"
    )


@pytest.mark.parametrize(("test", "wrong"), [("grep -q 2 add.py", 0), ("grep -q 3 add.py", 1)])
def test_a_reviewer_that_reports_failing_tests_as_passed_is_asked_again(
    full_store: Store, repository: Path, test: str, wrong: int
) -> None:
    """The thread's own test command decides whether the tests pass."""
    approval = {"status": "approved", "testsPass": True}
    engine, thread = solve(full_store, repository, HONEST, approval=approval, test=test)
    assert settle(engine, thread)["status"] == "completed"
    problems = [record["problem"] for record in engine.thread(thread).records if "answer" in record]
    assert len(problems) == wrong
    assert all(
        problem.startswith(
            "testsPass: the tests do not pass: 'grep -q 3 add.py' ends with exit code 1"
        )
        for problem in problems
    )
