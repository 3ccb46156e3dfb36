"""Removal of what a thread without success leaves unused."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.repositories import contents, git, make_repository
from uncaged_agents.workspace import Workspace, forked, inspect, remove_unused
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store

pytestmark = pytest.mark.slow  # a few dozen git processes each

THREAD = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS")
FORK = ThreadId("01HX5WBE01ABCDEFGHJKMNPQRS")


def start_of(repository: Path) -> dict[str, object]:
    place = inspect(
        repository,
        flow="fix",
        thread_id=THREAD,
        include_changes=False,
        environment=os.environ,
        now_ms=1000,
    )
    return {"workspace": place}


def workspace_of(start: dict[str, object], store: Store, thread: ThreadId = THREAD) -> Workspace:
    workspace = Workspace.of(start, store, thread, environment=os.environ)
    assert workspace is not None
    workspace.ensure(None, now_ms=2000)
    return workspace


def made(store: Store, tmp_path: Path) -> Workspace:
    return workspace_of(start_of(make_repository(tmp_path / "r")), store)


def is_there(workspace: Workspace) -> tuple[bool, bool]:
    """Return whether the worktree and the branch exist."""
    branches = git(workspace.repository, "branch", "--list", workspace.branch)
    return workspace.tree.exists(), bool(branches)


def test_a_worktree_without_changes_is_removed_with_its_branch(
    store: Store, tmp_path: Path
) -> None:
    """Caches of test runs do not count; the repository lists no worktree of the thread."""
    workspace = made(store, tmp_path)
    (workspace.tree / "__pycache__").mkdir()
    (workspace.tree / "__pycache__" / "a.pyc").write_bytes(b"")
    assert remove_unused(workspace)
    assert is_there(workspace) == (False, False)
    assert str(workspace.tree) not in git(workspace.repository, "worktree", "list")
    assert not remove_unused(workspace)


def test_links_and_their_targets_stay_in_the_checkout(store: Store, tmp_path: Path) -> None:
    """A linked `.venv` is no file of the person's in the worktree, and the directory that it leads
    to is not touched.
    """
    repository = make_repository(tmp_path / "r")
    (repository / ".git" / "info" / "exclude").write_text("node_modules\n")
    (repository / "node_modules").mkdir()
    (repository / "node_modules" / "a.js").write_text("1")
    workspace = workspace_of(start_of(repository), store)
    assert (workspace.tree / "node_modules").exists()
    assert remove_unused(workspace)
    assert (repository / "node_modules" / "a.js").read_text() == "1"


def untracked(tree: Path) -> None:
    (tree / "notes.txt").write_text("mine")


def ignored(tree: Path) -> None:
    (tree / ".gitignore").write_text("*.env\n")
    git(tree, "add", ".gitignore")
    git(tree, "rm", "-q", "--cached", ".gitignore")
    (tree / ".gitignore").unlink()
    exclude = Path(git(tree, "rev-parse", "--git-path", "info/exclude").strip())
    exclude.write_text("*.env\n")
    (tree / "secret.env").write_text("mine")


def changed(tree: Path) -> None:
    (tree / git(tree, "ls-files").split("\n")[0]).write_text("mine")


def committed(tree: Path) -> None:
    git(tree, "commit", "-q", "--allow-empty", "-m", "mine")


def committed_and_reset(tree: Path) -> None:
    committed(tree)
    git(tree, "reset", "-q", "--hard", "HEAD~1")


def switched(tree: Path) -> None:
    git(tree, "switch", "-q", "-c", "mine")


def locked(tree: Path) -> None:
    git(tree, "worktree", "lock", str(tree))


def embedded(tree: Path) -> None:
    make_repository(tree / "inner")


def checked_out_twice(tree: Path) -> None:
    branch = git(tree, "branch", "--show-current").strip()
    git(tree, "worktree", "add", "-q", "--force", str(tree.parent.parent / "second"), branch)


@pytest.mark.parametrize(
    "change",
    [
        untracked,
        ignored,
        changed,
        committed,
        committed_and_reset,
        switched,
        locked,
        embedded,
        checked_out_twice,
    ],
)
def test_whatever_a_person_or_an_agent_left_is_kept(
    store: Store, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """Worktree and branch stay, with every file in it."""
    workspace = made(store, tmp_path)
    change(workspace.tree)
    before = contents(workspace.tree)
    assert not remove_unused(workspace)
    assert is_there(workspace) == (True, True)
    assert contents(workspace.tree) == before


def test_a_worktree_with_a_shell_in_it_is_kept(store: Store, tmp_path: Path) -> None:
    """A process that works in the directory keeps it; once the process has ended it can go."""
    workspace = made(store, tmp_path)
    with subprocess.Popen(
        ["cat"], cwd=workspace.tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as shell:
        assert shell.stdin is not None
        assert not remove_unused(workspace)
        shell.stdin.close()
        shell.wait()
    assert remove_unused(workspace)


def test_a_stash_survives(store: Store, tmp_path: Path) -> None:
    """A stash belongs to the repository, so it is there after the removal."""
    workspace = made(store, tmp_path)
    changed(workspace.tree)
    git(workspace.tree, "stash", "-q")
    assert remove_unused(workspace)
    assert git(workspace.repository, "stash", "list").count("stash@") == 1


def test_a_fork_and_a_later_step_find_the_files_again(store: Store, tmp_path: Path) -> None:
    """The snapshots stay: a fork starts from one, and a thread that goes on makes its worktree
    anew on the same branch.
    """
    start = start_of(make_repository(tmp_path / "r"))
    workspace = workspace_of(start, store)
    files = contents(workspace.tree)
    snapshot = workspace.snapshot(1, None, now_ms=3000)
    assert remove_unused(workspace)
    place = forked(start["workspace"], flow="fix", thread_id=FORK)  # type: ignore[arg-type]
    fork = Workspace.of({"workspace": place}, store, FORK, environment=os.environ)
    assert fork is not None
    fork.ensure(snapshot, now_ms=4000)
    assert contents(fork.tree) == files
    workspace.ensure(snapshot, now_ms=5000)
    assert is_there(workspace) == (True, True)
    assert contents(workspace.tree) == files
