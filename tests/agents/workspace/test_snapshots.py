"""Content of snapshots, and the exact restore of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.repositories import contents, git, make_repository, write
from uncaged_agents.workspace import Workspace, inspect
from uncaged_agents.workspace.checkout import changes_bytes
from uncaged_agents.workspace.snapshots import Snapshots
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.processes.git import Git

pytestmark = pytest.mark.slow  # a few dozen git processes each

THREAD = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS")
Open = Callable[[Path], Workspace]


@pytest.fixture
def opened(store: Store) -> Open:
    """Opens the workspace of a thread in a repository, with its worktree made."""

    def make(repository: Path) -> Workspace:
        said = inspect(
            repository,
            flow="fix",
            thread_id=THREAD,
            include_changes=False,
            environment=os.environ,
            now_ms=1000,
        )
        workspace = Workspace.of({"workspace": said}, store, THREAD, environment=os.environ)
        assert workspace is not None
        workspace.ensure(None, now_ms=2000)
        return workspace

    return make


def state(workspace: Workspace) -> tuple[dict[str, bytes], str, str, str]:
    """Everything that a restore must bring back: files, what is staged, the branch and its
    commit.
    """
    tree = workspace.tree
    return (
        contents(tree),
        git(tree, "ls-files", "--stage"),
        git(tree, "symbolic-ref", "HEAD"),
        git(tree, "rev-parse", "HEAD"),
    )


def test_a_snapshot_holds_all_files_but_ignored_ones(tmp_path: Path, opened: Open) -> None:
    """Changed, new and deleted files are in it; ignored ones and links are not; its parents are
    HEAD and the snapshot before it.
    """
    repository = make_repository(
        tmp_path / "r", {"a": "1", "gone": "1", ".gitignore": "*.log\nnode_modules/\n"}
    )
    write(repository, {"node_modules/m": ""})
    workspace = opened(repository)
    first = git(repository, "rev-parse", workspace.ref).strip()
    write(workspace.tree, {"a": "2", "new/deep": "n", "x.log": "ignored"})
    (workspace.tree / "gone").unlink()
    commit = workspace.snapshot(3, None, now_ms=5000)
    assert git(repository, "ls-tree", "-r", "--name-only", commit).split() == [
        ".gitignore",
        "a",
        "new/deep",
    ]
    assert git(repository, "show", f"{commit}:a") == "2"
    assert git(repository, "log", "-1", "--format=%P", commit).split() == [
        git(repository, "rev-parse", "HEAD").strip(),
        first,
    ]
    assert git(repository, "rev-parse", workspace.ref).strip() == commit
    assert git(repository, "log", "-1", "--format=%an %ae %at %s", commit) == (
        f"uncaged-workflow uncaged-workflow@localhost 5 snapshot of thread {THREAD} after step 3\n"
    )


def test_a_snapshot_is_not_seen_in_status_or_branch(tmp_path: Path, opened: Open) -> None:
    """Index, branch and checkout are the agent's; a snapshot is made beside them."""
    repository = make_repository(tmp_path / "r")
    workspace = opened(repository)
    write(workspace.tree, {"new": "n", "staged": "s"})
    git(workspace.tree, "add", "staged")
    before = (
        state(workspace),
        git(workspace.tree, "status", "--porcelain"),
        git(repository, "status", "--porcelain"),
    )
    workspace.snapshot(1, None, now_ms=5000)
    assert (
        state(workspace),
        git(workspace.tree, "status", "--porcelain"),
        git(repository, "status", "--porcelain"),
    ) == before
    assert before[1].split() == ["A", "staged", "??", "new"]


def test_restore_brings_back_files_index_branch_and_commit(tmp_path: Path, opened: Open) -> None:
    """After commits, another branch, staged and unstaged changes, deletions and a half-done merge,
    all is as it was; ignored files stay.
    """
    repository = make_repository(
        tmp_path / "r", {"a": "1\n", "b": "1\n", "run.sh": "x", ".gitignore": "*.log\n"}
    )
    workspace = opened(repository)
    tree = workspace.tree
    write(tree, {"a": "2\n", "staged": "s"})
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("a")
    git(tree, "add", "staged")
    git(tree, "commit", "--quiet", "--message=agent", "a")
    commit = workspace.snapshot(1, None, now_ms=5000)
    before = state(workspace)

    git(tree, "checkout", "--quiet", "-b", "elsewhere")
    write(tree, {"a": "3\n", "b": "3\n", "more/files": "m", "kept.log": "log"})
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message=bad")
    (tree / "link").unlink()
    (tree / "run.sh").chmod(0o644)
    admin = Path(git(tree, "rev-parse", "--absolute-git-dir").strip())
    (admin / "MERGE_HEAD").write_text(commit, "utf-8")
    (admin / "index.lock").touch()
    (tree / "more" / "untracked").touch()

    workspace.restore(commit)
    after = state(workspace)
    assert after[0].pop("kept.log") == b"log"
    assert after == before
    assert (tree / "run.sh").stat().st_mode & 0o111
    assert not (admin / "MERGE_HEAD").exists()
    assert git(tree, "status", "--porcelain").splitlines() == [" M run.sh", "A  staged", "?? link"]


def test_restore_without_a_snapshot_goes_back_to_the_beginning(
    tmp_path: Path, opened: Open
) -> None:
    """The first role step can be asked again, too."""
    workspace = opened(make_repository(tmp_path / "r"))
    before = state(workspace)
    write(workspace.tree, {"add.py": "broken", "new": ""})
    git(workspace.tree, "add", "--all")
    git(workspace.tree, "commit", "--quiet", "--message=bad")
    workspace.restore(None)
    assert state(workspace) == before


def test_restore_goes_to_an_older_snapshot_and_forward_again(tmp_path: Path, opened: Open) -> None:
    """Files of any step can be had again, however far the worktree has moved on."""
    workspace = opened(make_repository(tmp_path / "r"))
    commits: list[str] = []
    states: list[dict[str, bytes]] = []
    for number in range(3):
        write(workspace.tree, {"add.py": f"{number}", f"new{number}": ""})
        commits.append(
            workspace.snapshot(number + 1, commits[-1] if commits else None, now_ms=5000)
        )
        states.append(contents(workspace.tree))
    for number in (0, 2, 1):
        workspace.restore(commits[number])
        assert contents(workspace.tree) == states[number]


def test_a_lost_or_torn_private_index_is_made_anew(tmp_path: Path, opened: Open) -> None:
    """The index is only a cache: a crash in the middle of writing it costs time, nothing else."""
    workspace = opened(make_repository(tmp_path / "r"))
    write(workspace.tree, {"add.py": "2"})
    commit = workspace.snapshot(1, None, now_ms=5000)
    before = contents(workspace.tree)
    index = workspace.scratch / "snapshots.git" / "index"
    for torn in (True, False):
        index.unlink()
        if torn:
            index.write_bytes(b"DIRC torn")
        write(workspace.tree, {"add.py": "3", "new": ""})
        workspace.restore(commit)
        assert contents(workspace.tree) == before


def test_a_torn_private_index_does_not_stop_a_snapshot(tmp_path: Path, opened: Open) -> None:
    """A snapshot makes a torn index anew, too."""
    workspace = opened(make_repository(tmp_path / "r"))
    (workspace.scratch / "snapshots.git" / "index").write_bytes(b"DIRC torn")
    write(workspace.tree, {"add.py": "2"})
    commit = workspace.snapshot(1, None, now_ms=5000)
    assert git(workspace.tree, "show", f"{commit}:add.py") == "2"
    assert git(workspace.tree, "ls-tree", "-r", "--name-only", commit).split() == [
        "add.py",
        "lib/deep.txt",
    ]


@pytest.mark.parametrize(
    "attribute",
    [
        "*.txt text eol=crlf",
        "*.txt filter=shout",
        "*.txt ident",
        "*.txt working-tree-encoding=UTF-16LE",
    ],
)
def test_bytes_come_back_whatever_the_repository_converts(
    tmp_path: Path, opened: Open, attribute: str
) -> None:
    """Line ends, filters, idents and encodings: a snapshot holds the bytes on disk, and git still
    sees no change in it.
    """
    repository = make_repository(tmp_path / "r", {"plain": "x"})
    git(repository, "config", "filter.shout.smudge", "tr a-z A-Z")
    git(repository, "config", "filter.shout.clean", "tr A-Z a-z")
    encoding = "utf-16-le" if "UTF-16" in attribute else "ascii"
    write(
        repository,
        {".gitattributes": f"{attribute}\n", "t.txt": "one $Id$\ntwo\n".encode(encoding)},
    )
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=converted")
    workspace = opened(repository)
    before = contents(workspace.tree)
    assert git(workspace.tree, "status", "--porcelain") == ""
    write(workspace.tree, {"mixed.txt": "one\r\ntwo\nthree $Id: x$\r\n".encode(encoding)})
    mixed = contents(workspace.tree)
    commit = workspace.snapshot(1, None, now_ms=5000)
    write(workspace.tree, {"t.txt": "spoiled", "mixed.txt": "spoiled", "plain": "y"})
    workspace.restore(commit)
    assert contents(workspace.tree) == mixed
    workspace.restore(None)
    assert contents(workspace.tree) == before
    assert git(workspace.tree, "status", "--porcelain") == ""


def test_files_that_were_converted_are_read_again(tmp_path: Path, opened: Open) -> None:
    """The worktree's index trusts its own conversion; a snapshot that did, too, would hold other
    bytes than the disk.
    """
    repository = make_repository(
        tmp_path / "r", {".gitattributes": "*.txt text eol=crlf\n", "t.txt": "one\n"}
    )
    workspace = opened(repository)
    private = workspace.scratch / "snapshots.git"
    admin = Path(git(workspace.tree, "rev-parse", "--absolute-git-dir").strip())
    for converted, expected in ((True, b"one\r\n"), (False, b"one\n")):
        snapshots = Snapshots(
            tree=workspace.tree,
            common=repository / ".git",
            admin=admin,
            private=private,
            ref=workspace.ref,
            branch=f"refs/heads/{workspace.branch}",
            links=(),
            environment=os.environ,
        )
        snapshots.create(converted=converted)
        # git reads files again that are as young as its index
        os.utime(private / "index", (4e9, 4e9))
        commit = snapshots.take("snapshot", previous=None, now_ms=5000)
        assert git(repository, "cat-file", "-s", f"{commit}:t.txt") == f"{len(expected)}\n"


@pytest.mark.parametrize(
    ("files", "setting", "changes"),
    [
        ({}, None, False),
        ({".gitattributes": "*.c diff=cpp\n# text\n"}, None, False),
        ({"deep/down/.gitattributes": "*.txt  eol=crlf\n"}, None, True),
        ({".gitattributes": "* filter=lfs -text\n"}, None, True),
        ({}, "core.autocrlf", True),
    ],
)
def test_conversions_are_known_from_attributes_and_settings(
    tmp_path: Path, files: dict[str, str], setting: str | None, changes: bool
) -> None:
    """Reading 50,000 files again takes seconds; a repository that converts nothing is spared it."""
    repository = make_repository(tmp_path / "r", {"a": "", **files})
    if setting is not None:
        git(repository, "config", setting, "true")
    assert changes_bytes(Git(directory=repository, environment=os.environ)) is changes


def test_no_filter_runs_for_a_snapshot(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter is a program that an agent can name; it runs for the person's checkout, never for
    ours.
    """
    home = tmp_path / "home"
    write(
        home,
        {
            ".gitconfig": f'[filter "spy"]\n\tclean = touch {tmp_path}/ran; cat\n\tsmudge = touch {tmp_path}/ran; cat\n'
        },
    )
    monkeypatch.setenv("HOME", str(home))
    repository = make_repository(tmp_path / "r", {"a": "x"})
    workspace = opened(repository)
    write(workspace.tree, {".gitattributes": "* filter=spy\n", "a": "y"})
    commit = workspace.snapshot(1, None, now_ms=5000)
    write(workspace.tree, {"a": "z"})
    workspace.restore(commit)
    assert not (tmp_path / "ran").exists()
    git(workspace.tree, "add", "--all")
    assert (tmp_path / "ran").exists(), "the spy itself must work"


@pytest.mark.parametrize("with_commit", [False, True])
def test_a_repository_that_an_agent_made_inside_is_left_alone(
    tmp_path: Path, opened: Open, with_commit: bool
) -> None:
    """An inner repository is in no snapshot and survives a restore; the rest of the worktree is
    snapshotted as usual.
    """
    workspace = opened(make_repository(tmp_path / "r"))
    make_repository(workspace.tree / "inner", {"i": "1"})
    if not with_commit:
        shutil.rmtree(workspace.tree / "inner" / ".git")
        git(workspace.tree / "inner", "init", "--quiet")
    write(workspace.tree, {"new": "n"})
    commit = workspace.snapshot(1, None, now_ms=5000)
    assert git(workspace.tree, "ls-tree", "-r", "--name-only", commit).split() == [
        "add.py",
        "lib/deep.txt",
        "new",
    ]
    workspace.restore(commit)
    assert (workspace.tree / "inner" / "i").read_text("utf-8") == "1"
    assert workspace.snapshot(2, commit, now_ms=5000)


def test_restore_repairs_a_worktree_whose_pointer_an_agent_broke(
    tmp_path: Path, opened: Open
) -> None:
    """``.git`` replaced by a repository of the agent's own: the worktree belongs to the person's
    repository again.
    """
    repository = make_repository(tmp_path / "r")
    workspace = opened(repository)
    (workspace.tree / ".git").unlink()
    git(workspace.tree, "init", "--quiet")
    workspace.restore(None)
    assert git(
        workspace.tree, "rev-parse", "--path-format=absolute", "--git-common-dir"
    ).strip() == str(repository / ".git")
    assert git(workspace.tree, "status", "--porcelain") == ""


def test_nothing_outside_the_worktree_is_written_through_a_link(
    tmp_path: Path, opened: Open
) -> None:
    """An agent replaced a directory by a link to the outside; restore replaces the link, not what
    it leads to.
    """
    outside = tmp_path / "outside"
    write(outside, {"deep.txt": "outside"})
    workspace = opened(make_repository(tmp_path / "r"))
    shutil.rmtree(workspace.tree / "lib")
    (workspace.tree / "lib").symlink_to(outside)
    workspace.restore(None)
    assert (outside / "deep.txt").read_text("utf-8") == "outside"
    assert (workspace.tree / "lib" / "deep.txt").read_text("utf-8") == "deep\n"
    assert not (workspace.tree / "lib").is_symlink()


def test_an_orphan_branch_is_restored(tmp_path: Path, opened: Open) -> None:
    """An agent may start a branch without a commit; its snapshot has one parent."""
    workspace = opened(make_repository(tmp_path / "r"))
    git(workspace.tree, "checkout", "--quiet", "--orphan", "pages")
    commit = workspace.snapshot(1, None, now_ms=5000)
    git(workspace.tree, "commit", "--quiet", "--message=pages")
    workspace.restore(commit)
    assert git(workspace.tree, "symbolic-ref", "HEAD") == "refs/heads/pages\n"


def test_a_snapshot_takes_five_git_processes(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git process costs 2 ms at least; on a clean repository they are most of the price."""
    workspace = opened(make_repository(tmp_path / "r"))
    shim = tmp_path / "shim"
    write(
        shim,
        {"git": f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nexec {shutil.which("git")} "$@"\n'},
    )
    (shim / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim}:{os.environ['PATH']}")
    workspace.snapshot(1, None, now_ms=5000)
    assert len((tmp_path / "calls").read_text("utf-8").splitlines()) == 5
