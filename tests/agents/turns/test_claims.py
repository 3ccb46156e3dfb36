"""Claims of agents, compared with a real worktree."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from testbed.repositories import git, make_repository, write
from testbed.roles import THREAD, request
from uncaged_agents.turns.claims import Claims
from uncaged_agents.workspace import Workspace, inspect
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.storage.store import Store

pytestmark = pytest.mark.slow  # worktrees


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(
        tmp_path / "r",
        {"add.py": "1\n", "sub/deep.py": "2\n", "gone.py": "3\n", ".gitignore": "*.log\n"},
    )


@pytest.fixture
def claims(store: Store, repository: Path, tmp_path: Path) -> Claims:
    """Claims about a worktree in which nothing was done yet."""
    start = {
        "workspace": inspect(
            repository / "sub",
            flow="f",
            thread_id=THREAD,
            include_changes=False,
            environment=os.environ,
            now_ms=1000,
        )
    }
    workspace = Workspace.of(start, store, THREAD, environment=os.environ)
    assert workspace is not None
    workspace.ensure(None, now_ms=1000)
    scratch = tmp_path / "scratch"
    asked = request(
        scratch,
        worktree=workspace.directory,
        environment={"PATH": os.environ["PATH"]},
        test_command="test -s ../add.py",
    )
    return Claims(workspace=workspace, request=asked, latest=None)


def tree(claims: Claims) -> Path:
    assert claims.workspace is not None
    return claims.workspace.tree


def holds(claims: Claims, claim: str, value: object) -> bool:
    return claims.problem(claim, value) is None


def test_a_claimed_branch_is_the_one_that_the_worktree_is_on(claims: Claims) -> None:
    """A branch with a command in its name, another branch of the repository and a detached HEAD do
    not hold.
    """
    branch = git(tree(claims), "branch", "--show-current").strip()
    assert holds(claims, "git.branch", branch)
    assert not holds(claims, "git.branch", "x; touch PWNED #")
    assert not holds(claims, "git.branch", "main")
    assert not holds(claims, "git.branch", 7)
    git(tree(claims), "checkout", "--quiet", "--detach")
    assert (
        "the working tree, which is on no branch (report what is there, or do first what is missing)"
        in str(claims.problem("git.branch", branch))
    )


@pytest.mark.parametrize(
    "value", ["0" * 40, "f" * 64, "HEAD", "--help", "main", "\0" * 40, 7, ["x"], "A" * 40]
)
def test_a_commit_that_does_not_exist_does_not_hold(claims: Claims, value: object) -> None:
    """Forty zeros, names, options and other types are no commit's id."""
    assert "there is no commit" in str(claims.problem("git.commit", value))


def test_a_claimed_commit_was_made_in_this_thread(claims: Claims, repository: Path) -> None:
    """The commit at which the thread began, a commit elsewhere, and an object put in another's
    place do not hold.
    """
    base = git(repository, "rev-parse", "HEAD").strip()
    assert "was not made in this thread" in str(claims.problem("git.commit", base))
    git(repository, "commit", "--quiet", "--allow-empty", "--message=elsewhere")
    elsewhere = git(repository, "rev-parse", "HEAD").strip()
    assert not holds(claims, "git.commit", elsewhere)
    git(tree(claims), "replace", "--graft", base, elsewhere)
    assert not holds(claims, "git.commit", elsewhere)
    git(tree(claims), "commit", "--quiet", "--allow-empty", "--message=mine")
    mine = git(tree(claims), "rev-parse", "HEAD").strip()
    assert holds(claims, "git.commit", mine)
    assert not holds(claims, "git.commit", mine[:12])


def test_a_worktree_that_names_another_repository_does_not_prove_a_commit(
    claims: Claims, tmp_path: Path
) -> None:
    """An agent that writes another repository into the file .git has made no commit in the
    thread's.
    """
    other = make_repository(tmp_path / "other")
    (tree(claims) / ".git").write_text(f"gitdir: {other / '.git'}\n")
    assert not holds(claims, "git.commit", git(other, "rev-parse", "HEAD").strip())
    assert not holds(claims, "git.branch", "main")


def test_claimed_files_are_changed(claims: Claims) -> None:
    """Changed, new and deleted files hold, from the root or from where the agent works; untouched,
    ignored and foreign ones do not.
    """
    write(tree(claims), {"add.py": "5\n", "sub/new.py": "", "a.log": "x"})
    (tree(claims) / "gone.py").unlink()
    here = str(tree(claims) / "add.py")
    assert holds(
        claims, "git.files", ["add.py", "./add.py", here, "sub/new.py", "new.py", "gone.py"]
    )
    assert holds(claims, "git.files", "add.py")
    for wrong in (
        "deep.py",
        "sub/deep.py",
        "a.log",
        "none.py",
        "/etc/passwd",
        "../r/add.py",
        "\0",
        "x" * 5000,
    ):
        assert not holds(claims, "git.files", ["add.py", wrong]), wrong
    assert "'none.py'" in str(claims.problem("git.files", ["none.py"]))


def test_files_of_an_earlier_step_and_files_put_back_hold(claims: Claims) -> None:
    """A file counts as changed since the thread began, or since the step began, whichever it is."""
    assert claims.workspace is not None
    write(tree(claims), {"add.py": "5\n"})
    latest = claims.workspace.snapshot(1, None, now_ms=2000)
    later = replace(claims, latest=latest)
    assert holds(later, "git.files", ["add.py"])
    write(tree(claims), {"add.py": "1\n"})
    assert holds(later, "git.files", ["add.py"])
    assert not holds(claims, "git.files", ["add.py"])


def test_claimed_tests_are_run_on_a_copy(claims: Claims) -> None:
    """The thread's test command decides; what it writes does not reach the worktree, and without a
    command nothing is checked.
    """
    assert holds(claims, "tests", True)
    writes = replace(
        claims, request=replace(claims.request, test_command="echo out; touch made; test -e none")
    )
    assert "ends with exit code 1: out (report" in str(writes.problem("tests", True))
    assert not (tree(claims) / "sub" / "made").exists()
    assert holds(writes, "tests", False)
    assert holds(replace(claims, request=replace(claims.request, test_command=None)), "tests", True)


def test_tests_that_could_not_be_run_to_their_end_do_not_hold(claims: Claims) -> None:
    """A kill during the check proves nothing, and a machine without a shell on PATH is a lack."""
    slow = replace(claims, request=replace(claims.request, test_command="sleep 600"))
    threading.Timer(0.3, slow.request.cancel.request).start()
    assert not holds(slow, "tests", True)
    bare = replace(claims, request=replace(claims.request, environment={"PATH": "/nonexistent"}))
    with pytest.raises(
        EnvironmentLacks, match=r"the test command cannot be run: .*set PATH, then resume"
    ):
        bare.problem("tests", True)


@pytest.mark.parametrize("claim", ["git.branch", "git.commit", "git.files", "tests"])
@pytest.mark.parametrize("value", ["", [], None])
def test_nothing_claimed_is_nothing_to_check(claims: Claims, claim: str, value: object) -> None:
    """An empty field of an answer that reports a failure is no claim."""
    assert holds(claims, claim, value)


def test_a_claim_without_a_workspace_does_not_hold(claims: Claims) -> None:
    """A flow without a workspace has nothing to compare a claim with."""
    assert "the flow has no workspace" in str(
        replace(claims, workspace=None).problem("git.branch", "main")
    )
