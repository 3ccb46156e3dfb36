"""How the engine calls git."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from testbed.repositories import git, make_repository
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.processes.git import Git, GitError, WorkspaceError, on_disk


def test_no_variable_of_the_callers_git_is_inherited(tmp_path: Path) -> None:
    """A GIT_DIR from a hook or an agent must not lead our commands into another repository."""
    here, other = make_repository(tmp_path / "here"), make_repository(tmp_path / "other")
    environment = {**os.environ, "GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": "/nowhere"}
    assert Git(directory=here, environment=environment).line("rev-parse", "--show-toplevel") == str(
        here
    )


def test_a_failure_carries_gits_words(tmp_path: Path) -> None:
    """The message has the command, the directory and git's words; the class is one that pauses a
    thread.
    """
    repository = make_repository(tmp_path / "r")
    with pytest.raises(GitError) as caught:
        Git(directory=repository, environment=os.environ).run("rev-parse", "--verify", "nothing")
    assert (
        str(caught.value)
        == f"git rev-parse failed in {repository} (exit 128): fatal: Needed a single revision"
    )
    assert isinstance(caught.value, EnvironmentLacks)


def test_hooks_of_the_repository_do_not_run(tmp_path: Path) -> None:
    """A hook is the person's program for the person's commands, not for ours."""
    repository = make_repository(tmp_path / "r")
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch ran\n", "utf-8")
    hook.chmod(0o755)
    Git(directory=repository, environment=os.environ).run("checkout", "--quiet", "-b", "ours")
    assert not (repository / "ran").exists()
    git(repository, "checkout", "--quiet", "-b", "theirs")
    assert (repository / "ran").exists()


def test_a_lock_of_another_git_is_waited_for(tmp_path: Path) -> None:
    """Two processes in one repository disturb each other for a moment only."""
    repository = make_repository(tmp_path / "r")
    lock = repository / ".git" / "index.lock"
    lock.touch()
    release = threading.Timer(0.1, lock.unlink)
    release.start()
    Git(directory=repository, environment=os.environ).run("add", "--all")
    release.join()
    assert not lock.exists()


def test_without_git_or_directory_the_message_says_which(tmp_path: Path) -> None:
    """A missing git and a missing directory look alike to the system (no such file), but a person
    fixes them differently.
    """
    with pytest.raises(WorkspaceError, match="no git on PATH"):
        Git(directory=tmp_path, environment={"PATH": str(tmp_path)}).run("status")
    with pytest.raises(WorkspaceError, match="gone is gone"):
        Git(directory=tmp_path / "gone", environment=os.environ).run("status")


def test_an_error_of_the_disk_is_one_that_a_person_can_fix(tmp_path: Path) -> None:
    """A full disk pauses the thread; it is no bug of the engine."""
    with (
        pytest.raises(WorkspaceError, match=r"missing: No such file or directory; correct that"),
        on_disk(tmp_path),
    ):
        (tmp_path / "missing").read_bytes()


def test_an_output_is_read_up_to_a_size(tmp_path: Path) -> None:
    """The whole of it, nothing of a larger one, or git's words."""
    runner = Git(directory=make_repository(tmp_path / "r", {"a": "12345"}), environment=os.environ)
    words, named = ("cat-file", "--batch"), b"HEAD:a\n"
    whole = runner.run(*words, stdin=named)
    assert runner.bounded(*words, stdin=named, most_bytes=len(whole)) == whole
    assert runner.bounded(*words, stdin=named, most_bytes=len(whole) - 1) is None
    with pytest.raises(GitError, match=r"git rev-parse failed in .*: fatal: Needed"):
        runner.bounded("rev-parse", "--verify", "nothing", stdin=b"", most_bytes=100)
