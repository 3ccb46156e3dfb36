"""Inspection of a person's checkout by the client, before a thread starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from testbed.repositories import contents, git, make_repository, write
from uncaged_agents.workspace import forked, inspect
from uncaged_bundles.errors import EnvironmentLacks, UsageError

THREAD = "01HX5WBE00ABCDEFGHJKMNPQRS"


def look(directory: Path, **more: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"include_changes": False, "environment": os.environ}
    return inspect(directory, flow="fix", thread_id=THREAD, now_ms=7000, **(usual | more))


def test_a_clean_checkout_is_described(tmp_path: Path) -> None:
    """Repository, subdirectory, the commit at HEAD, a branch named by flow and thread."""
    repository = make_repository(tmp_path / "r")
    head = git(repository, "rev-parse", "HEAD").strip()
    assert look(repository / "lib") == {
        "repository": str(repository),
        "subdirectory": "lib",
        "base": head,
        "branch": "uncaged/fix/01hx5wbe00abcd",
        "links": [],
    }
    assert look(repository)["subdirectory"] == ""


def test_a_fork_differs_by_its_branch_alone(tmp_path: Path) -> None:
    """Two worktrees cannot share a branch; everything else is the source's."""
    said = look(make_repository(tmp_path / "r"))
    fork = forked(said, flow="fix", thread_id="01HX5WBE01" + "Z" * 16)
    assert fork == {**said, "branch": "uncaged/fix/01hx5wbe01zzzz"}


def test_uncommitted_changes_are_listed(tmp_path: Path) -> None:
    """Changed, deleted, staged and untracked files stop the start, and the message says how to go
    on.
    """
    repository = make_repository(tmp_path / "r", {"a": "1", "b": "1", "c": "1"})
    write(repository, {"a": "2", "new": "n", "staged": "s"})
    (repository / "b").unlink()
    git(repository, "add", "staged")
    with pytest.raises(UsageError) as caught:
        look(repository)
    message = str(caught.value)
    assert all(name in message for name in ("a", "b", "new", "staged"))
    assert "--include-changes" in message


def test_a_long_list_of_changes_is_cut(tmp_path: Path) -> None:
    """A thousand names would hide the next step."""
    repository = make_repository(tmp_path / "r")
    write(repository, {f"new{number:03}": "" for number in range(50)})
    with pytest.raises(UsageError, match=r"new009 and 40 more\)"):
        look(repository)


def test_included_changes_become_the_base(tmp_path: Path) -> None:
    """The base is a commit of the dirty tree, untracked files included, ignored ones not; the
    checkout itself does not change.
    """
    repository = make_repository(tmp_path / "r", {"a": "1", "gone": "1", ".gitignore": "ignored\n"})
    write(repository, {"a": "2", "new": "n", "ignored": "i"})
    (repository / "gone").unlink()
    before = (
        contents(repository),
        git(repository, "status", "--porcelain"),
        git(repository, "rev-parse", "HEAD"),
    )
    base = look(repository, include_changes=True)["base"]
    assert git(repository, "ls-tree", "-r", "--name-only", base).split() == [
        ".gitignore",
        "a",
        "new",
    ]
    assert git(repository, "show", f"{base}:a") == "2"
    assert git(repository, "rev-parse", f"{base}^") == before[2]
    assert (
        contents(repository),
        git(repository, "status", "--porcelain"),
        git(repository, "rev-parse", "HEAD"),
    ) == before


def test_the_base_of_changes_follows_from_them_alone(tmp_path: Path) -> None:
    """Same tree, same time: same commit, for any person."""
    repository = make_repository(tmp_path / "r")
    write(repository, {"new": "n"})
    assert (
        look(repository, include_changes=True)["base"]
        == look(repository, include_changes=True)["base"]
    )


def test_a_detached_head_is_as_good_as_a_branch(tmp_path: Path) -> None:
    """The thread has a branch of its own; where the person's HEAD points does not matter."""
    repository = make_repository(tmp_path / "r")
    git(repository, "checkout", "--quiet", "--detach")
    assert look(repository)["base"] == git(repository, "rev-parse", "HEAD").strip()


def test_what_cannot_be_a_workspace_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """No directory, no repository, a bare one, the git directory itself, no commit yet."""
    plain, bare, empty = tmp_path / "plain", tmp_path / "bare", tmp_path / "empty"
    for directory in (plain, bare, empty):
        directory.mkdir()
    git(bare, "init", "--quiet", "--bare")
    git(empty, "init", "--quiet")
    for directory, words in (
        (tmp_path / "nowhere", "is not a directory; name another with --workspace"),
        (plain, "is not in a git repository; run `git init`"),
        (bare, "is a bare repository; clone it"),
        (empty / ".git", "is inside a git directory"),
        (empty, "has no commit yet; commit once"),
    ):
        with pytest.raises(UsageError, match=words):
            look(directory)


def test_a_missing_git_is_a_lack_of_the_machine(tmp_path: Path) -> None:
    """Not the person's words are wrong, but something has to be installed."""
    with pytest.raises(EnvironmentLacks, match="install git"):
        look(tmp_path, environment={"PATH": str(tmp_path)})


def test_unmerged_files_are_refused_even_with_their_changes(tmp_path: Path) -> None:
    """A base with conflict markers is of no use."""
    repository = make_repository(tmp_path / "r", {"a": "1\n"})
    git(repository, "checkout", "--quiet", "-b", "side")
    write(repository, {"a": "2\n"})
    git(repository, "commit", "--quiet", "--all", "--message=two")
    git(repository, "checkout", "--quiet", "main")
    write(repository, {"a": "3\n"})
    git(repository, "commit", "--quiet", "--all", "--message=three")
    with pytest.raises(Exception, match="merge"):
        git(repository, "merge", "side")
    with pytest.raises(UsageError, match=r"unmerged files \(a\)"):
        look(repository, include_changes=True)


def test_ignored_dependencies_are_found_wherever_they_are(tmp_path: Path) -> None:
    """Dependencies at the root and in packages are linked, ignored by pattern or by their own
    .gitignore; tracked ones and other ignored directories are not.
    """
    repository = make_repository(
        tmp_path / "r",
        {".gitignore": "node_modules/\n/build/\n", "packages/a/x": "", "venv/tracked": "t"},
    )
    write(
        repository,
        {
            "node_modules/m/i.js": "",
            "packages/a/node_modules/m/i.js": "",
            ".venv/.gitignore": "*\n",
            ".venv/pyvenv.cfg": "",
            "build/o": "",
        },
    )
    assert look(repository)["links"] == [".venv", "node_modules", "packages/a/node_modules"]


def test_further_links_are_relative_to_where_the_person_is(tmp_path: Path) -> None:
    """``--link`` takes ignored files and directories, and what lies inside an ignored directory."""
    repository = make_repository(
        tmp_path / "r", {".gitignore": "secret.env\ndata/\n", "app/main": ""}
    )
    write(repository, {"app/secret.env": "x", "data/big/one": "1"})
    assert look(repository / "app", links=["secret.env"])["links"] == ["app/secret.env"]
    assert look(repository, links=["data/big"])["links"] == ["data/big"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("add.py", "git does not ignore it"),
        ("nothing", "there is nothing at"),
        ("../r", "inside the workspace"),
        ("/etc", "inside the workspace"),
    ],
)
def test_a_link_that_cannot_be_one_is_refused(tmp_path: Path, name: str, words: str) -> None:
    """Tracked files are in the worktree already, and nothing outside the repository is linked."""
    repository = make_repository(tmp_path / "r")
    with pytest.raises(UsageError, match=words):
        look(repository, links=[name])
