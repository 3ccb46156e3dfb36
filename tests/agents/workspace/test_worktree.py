"""A thread's worktree from its making to its removal."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from testbed.repositories import contents, git, make_repository, write
from uncaged_agents.workspace import Workspace, WorkspaceError, forked, inspect, last_snapshot
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store

pytestmark = pytest.mark.slow  # a few dozen git processes each

THREAD = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS")
FORK = ThreadId("01HX5WBE01ABCDEFGHJKMNPQRS")


def start_of(repository: Path, thread: ThreadId = THREAD, **more: Any) -> dict[str, object]:
    usual: dict[str, Any] = {"include_changes": False, "environment": os.environ}
    return {
        "workspace": inspect(
            repository, flow="fix", thread_id=thread, now_ms=1000, **(usual | more)
        )
    }


def workspace_of(start: dict[str, object], store: Store, thread: ThreadId = THREAD) -> Workspace:
    workspace = Workspace.of(start, store, thread, environment=os.environ)
    assert workspace is not None
    return workspace


def test_a_start_record_without_workspace_has_none(store: Store) -> None:
    """A flow whose roles need no files needs no git."""
    assert Workspace.of({}, store, THREAD, environment={}) is None
    assert Workspace.of({"workspace": None}, store, THREAD, environment={}) is None


def test_the_worktree_is_on_a_branch_of_its_own(store: Store, tmp_path: Path) -> None:
    """Files as in the checkout, the thread's branch at the base; the checkout, its branch and its
    status are as before.
    """
    repository = make_repository(tmp_path / "r")
    before = (contents(repository), git(repository, "status", "--porcelain=v2", "--branch"))
    workspace = workspace_of(start_of(repository / "lib"), store)
    workspace.ensure(None, now_ms=2000)
    assert contents(workspace.tree) == contents(repository)
    assert git(workspace.tree, "status", "--porcelain", "--branch") == f"## {workspace.branch}\n"
    assert workspace.directory == workspace.tree / "lib"
    assert (contents(repository), git(repository, "status", "--porcelain=v2", "--branch")) == before


def test_making_it_again_changes_nothing(store: Store, tmp_path: Path) -> None:
    """The worktree is requested by each role step and made by the first; an agent's files stay."""
    workspace = workspace_of(start_of(make_repository(tmp_path / "r")), store)
    workspace.ensure(None, now_ms=2000)
    write(workspace.tree, {"new": "n"})
    workspace.ensure(None, now_ms=3000)
    assert (workspace.tree / "new").exists()


def test_a_subdirectory_without_tracked_files_is_there(store: Store, tmp_path: Path) -> None:
    """A thread can start in a directory that holds ignored files only."""
    repository = make_repository(tmp_path / "r", {".gitignore": "out/\n"})
    write(repository, {"out/x": ""})
    workspace = workspace_of(start_of(repository / "out"), store)
    workspace.ensure(None, now_ms=2000)
    assert workspace.directory.is_dir()
    assert list(workspace.directory.iterdir()) == []


def test_dependencies_are_linked_and_git_sees_nothing_of_them(store: Store, tmp_path: Path) -> None:
    """Neither status nor a snapshot shows them, even when an agent no longer ignores them; what an
    agent removed comes back.
    """
    repository = make_repository(tmp_path / "r", {".gitignore": "node_modules/\n"})
    write(repository, {"node_modules/m/i.js": "1"})
    workspace = workspace_of(start_of(repository), store)
    workspace.ensure(None, now_ms=2000)
    assert git(workspace.tree, "status", "--porcelain") == ""
    write(workspace.tree, {".gitignore": ""})
    commit = workspace.snapshot(1, None, now_ms=3000)
    assert git(repository, "ls-tree", "-r", "--name-only", commit).split() == [".gitignore"]
    shutil.rmtree(workspace.tree / "node_modules")
    workspace.ensure(None, now_ms=4000)
    workspace.restore(commit)
    assert (workspace.tree / "node_modules" / "m" / "i.js").read_text("utf-8") == "1"


def test_a_change_in_the_instant_of_the_commit_is_included(store: Store, tmp_path: Path) -> None:
    """Same size, same time as git's index: git looks twice because of the index's own time, and a
    copy of the index keeps that.
    """
    repository = make_repository(tmp_path / "r", {"a": "1"})
    # or the test could not put the clock back
    git(repository, "config", "core.trustctime", "false")
    instant = 1_000_000_000_000_000_000
    os.utime(repository / "a", ns=(instant, instant))
    git(repository, "update-index", "--refresh")
    write(repository, {"a": "2"})
    for path in (repository / "a", repository / ".git" / "index"):
        os.utime(path, ns=(instant, instant))
    workspace = workspace_of(start_of(repository, include_changes=True), store)
    workspace.ensure(None, now_ms=2000)
    assert contents(workspace.tree) == {"a": b"2"}


def test_included_changes_are_the_beginning(store: Store, tmp_path: Path) -> None:
    """The worktree has them committed, so that an agent's changes are separate from them."""
    repository = make_repository(tmp_path / "r", {"a": "1"})
    write(repository, {"a": "2", "new": "n"})
    workspace = workspace_of(start_of(repository, include_changes=True), store)
    workspace.pin(workspace.base)
    git(repository, "gc", "--quiet", "--prune=now")
    workspace.ensure(None, now_ms=2000)
    assert contents(workspace.tree) == {"a": b"2", "new": b"n"}
    assert git(workspace.tree, "status", "--porcelain") == ""
    assert workspace.remove() is None, "the branch holds nothing beyond its base"
    assert git(repository, "branch", "--list", "uncaged/*") == ""


def test_a_fork_starts_from_the_step_it_was_cut_at(store: Store, tmp_path: Path) -> None:
    """A fork has the files and commits of that step, on a branch of its own; the source's branch
    and worktree do not move.
    """
    repository = make_repository(tmp_path / "r")
    start = start_of(repository)
    source = workspace_of(start, store)
    source.ensure(None, now_ms=2000)
    write(source.tree, {"add.py": "one", "new": "n"})
    git(source.tree, "commit", "--quiet", "--message=agent", "add.py")
    commit = source.snapshot(1, None, now_ms=3000)
    files, head = contents(source.tree), git(source.tree, "rev-parse", "HEAD")
    write(source.tree, {"add.py": "two"})
    git(source.tree, "commit", "--quiet", "--all", "--message=more")
    later = source.snapshot(2, commit, now_ms=4000)

    said: Any = start["workspace"]
    fork = workspace_of({"workspace": forked(said, flow="fix", thread_id=FORK)}, store, FORK)
    fork.pin(commit)
    source_state = (contents(source.tree), git(source.tree, "rev-parse", "HEAD"))
    fork.ensure(commit, now_ms=5000)
    assert (contents(fork.tree), git(fork.tree, "rev-parse", "HEAD")) == (files, head)
    assert git(fork.tree, "symbolic-ref", "--short", "HEAD").strip() == fork.branch != source.branch
    write(fork.tree, {"add.py": "three"})
    fork.restore(commit)
    assert contents(fork.tree) == files
    assert (contents(source.tree), git(source.tree, "rev-parse", "HEAD")) == source_state
    source.remove()
    git(repository, "gc", "--quiet", "--prune=now")
    fork.restore(commit)
    assert contents(fork.tree) == files
    assert later not in git(repository, "for-each-ref", "--format=%(objectname)")


def test_a_lost_worktree_is_made_anew_from_the_last_snapshot(store: Store, tmp_path: Path) -> None:
    """After a cleanup by hand the thread goes on with the files of its last finished step."""
    workspace = workspace_of(start_of(make_repository(tmp_path / "r")), store)
    workspace.ensure(None, now_ms=2000)
    write(workspace.tree, {"new": "n"})
    commit = workspace.snapshot(1, None, now_ms=3000)
    before = contents(workspace.tree)
    shutil.rmtree(workspace.tree)
    workspace.ensure(commit, now_ms=4000)
    assert contents(workspace.tree) == before
    shutil.rmtree(workspace.scratch)
    workspace.ensure(commit, now_ms=4000)
    assert contents(workspace.tree) == before


def test_a_worktree_that_a_crash_left_half_made_is_made_anew(store: Store, tmp_path: Path) -> None:
    """The record that a worktree is complete is written last."""
    workspace = workspace_of(start_of(make_repository(tmp_path / "r")), store)
    workspace.ensure(None, now_ms=2000)
    (workspace.scratch / "worktree.json").unlink()
    (workspace.tree / "add.py").unlink()
    workspace.ensure(None, now_ms=3000)
    assert (workspace.tree / "add.py").exists()
    assert git(workspace.tree, "status", "--porcelain") == ""


def test_two_threads_in_one_repository_do_not_disturb_each_other(
    store: Store, tmp_path: Path
) -> None:
    """Eight at once make worktrees, work, snapshot and restore; each has its own files and commits
    in the end.
    """
    repository = make_repository(tmp_path / "r")
    threads = [ThreadId(f"01HX5WBE0{number}ABCDEFGHJKMNPQRS") for number in range(8)]
    workspaces = [workspace_of(start_of(repository, thread), store, thread) for thread in threads]
    problems: list[BaseException] = []

    def work(workspace: Workspace, name: str) -> None:
        try:
            workspace.ensure(None, now_ms=2000)
            write(workspace.tree, {"add.py": name})
            git(workspace.tree, "commit", "--quiet", "--all", f"--message={name}")
            commit = workspace.snapshot(1, None, now_ms=3000)
            write(workspace.tree, {"add.py": "spoiled"})
            workspace.restore(commit)
        except BaseException as exc:
            problems.append(exc)

    runners = [
        threading.Thread(target=work, args=(one, thread))
        for one, thread in zip(workspaces, threads, strict=True)
    ]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    assert problems == []
    for workspace, thread in zip(workspaces, threads, strict=True):
        assert (workspace.tree / "add.py").read_text("utf-8") == thread
        assert git(workspace.tree, "log", "-1", "--format=%s").strip() == thread
    assert git(repository, "status", "--porcelain") == ""


def test_a_branch_that_the_person_checked_out_is_not_moved(store: Store, tmp_path: Path) -> None:
    """Resetting a branch under a person's checkout would show all their files as changed."""
    repository = make_repository(tmp_path / "r")
    workspace = workspace_of(start_of(repository), store)
    git(repository, "checkout", "--quiet", "-b", workspace.branch)
    with pytest.raises(
        WorkspaceError, match=f"is checked out in {repository}; switch to another one"
    ):
        workspace.ensure(None, now_ms=2000)
    git(repository, "checkout", "--quiet", "main")
    workspace.ensure(None, now_ms=2000)


def test_a_repository_that_is_gone_can_come_back(store: Store, tmp_path: Path) -> None:
    """An unmounted disk pauses the thread, it does not end it."""
    repository = make_repository(tmp_path / "r")
    workspace = workspace_of(start_of(repository), store)
    repository.rename(tmp_path / "away")
    with pytest.raises(WorkspaceError, match="is gone; bring it back"):
        workspace.ensure(None, now_ms=2000)
    (tmp_path / "away").rename(repository)
    workspace.ensure(None, now_ms=2000)


def test_removal_leaves_nothing_of_a_thread_that_committed_nothing(
    store: Store, tmp_path: Path
) -> None:
    """Worktree, private files, ref and the empty branch go; what was linked stays where it is."""
    repository = make_repository(tmp_path / "r", {".gitignore": "node_modules/\n"})
    write(repository, {"node_modules/m": "1"})
    before = (
        git(repository, "for-each-ref"),
        git(repository, "worktree", "list"),
        contents(repository),
    )
    workspace = workspace_of(start_of(repository), store)
    workspace.ensure(None, now_ms=2000)
    write(workspace.tree, {"new": "n"})
    workspace.snapshot(1, None, now_ms=3000)
    assert workspace.remove() is None
    assert (
        git(repository, "for-each-ref"),
        git(repository, "worktree", "list"),
        contents(repository),
    ) == before
    assert [path.name for path in store.work.iterdir()] == [".worktrees.lock"]
    assert workspace.remove() is None, "removing again is no error"


def test_removal_keeps_a_branch_with_commits_until_they_are_merged(
    store: Store, tmp_path: Path
) -> None:
    """Work that exists nowhere else is kept; merged work is removed."""
    repository = make_repository(tmp_path / "r")
    workspace = workspace_of(start_of(repository), store)
    workspace.ensure(None, now_ms=2000)
    git(workspace.tree, "commit", "--quiet", "--allow-empty", "--message=work")
    assert workspace.remove() == workspace.branch
    assert git(repository, "log", "-1", "--format=%s", workspace.branch) == "work\n"
    git(repository, "merge", "--quiet", workspace.branch)
    assert workspace.remove() is None
    assert git(repository, "branch", "--list", workspace.branch) == ""


def test_removal_works_without_the_repository(store: Store, tmp_path: Path) -> None:
    """A deleted repository must not keep a thread from being removed."""
    repository = make_repository(tmp_path / "r")
    workspace = workspace_of(start_of(repository), store)
    workspace.ensure(None, now_ms=2000)
    shutil.rmtree(repository)
    assert workspace.remove() is None
    assert not workspace.tree.exists()


def test_removal_works_where_the_repository_is_none_any_more(store: Store, tmp_path: Path) -> None:
    """The directory is there, and git knows nothing of it."""
    repository = make_repository(tmp_path / "r")
    workspace = workspace_of(start_of(repository), store)
    workspace.ensure(None, now_ms=2000)
    shutil.rmtree(repository / ".git")
    assert workspace.remove() is None
    assert not workspace.tree.exists()


def test_the_last_snapshot_is_found_in_failed_steps_too() -> None:
    """A failed role step left files behind as well."""
    steps: list[dict[str, object]] = [
        {"seq": 1, "role": "a", "snapshot": "one"},
        {"seq": 2, "error": {"kind": "timeout", "snapshot": "two"}},
        {"seq": 3, "outcome": {"snapshot": "not a snapshot of ours"}},
        {"seq": 4, "role": "b"},
    ]
    assert last_snapshot(steps) == "two"
    assert last_snapshot(steps[:1]) == "one"
    assert last_snapshot([]) is None
