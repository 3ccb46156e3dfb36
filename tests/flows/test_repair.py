"""The built-in repair through the whole command: what a prompt asks for, the question to a person,
and settings for one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testbed.forked_commands import ForkedCommands
from testbed.repositories import git, make_repository
from testbed.terminal import on_terminal
from uncaged_bundles.storage.store import Store

pytestmark = pytest.mark.slow

Command = Callable[..., "subprocess.CompletedProcess[str]"]
PRICES = {
    "prices.py": "def gross(net):\n    return net - 20\n",
    "test_prices.py": (
        "from prices import gross\n\n\nclass TestGross:\n"
        "    def test_adds(self):\n        assert gross(100) == 120\n"
    ),
}
OTHER = "\n    def test_rounds(self):\n        assert round(gross(100) / 7, 2) == 'no edit gives this'\n"
UNRELATED = "Passwords with an umlaut are refused at the login"
WANTED = "test_prices.py::TestGross::test_adds"
LEFT = "test_prices.py::TestGross::test_rounds"


@pytest.fixture
def environment(tmp_path: Path, full_store: Store) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LANG", "XDG_RUNTIME_DIR") if name in os.environ}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    store = str(full_store.root)
    return {**kept, "PATH": path, "HOME": str(tmp_path), "UNCAGED_WORKFLOW_HOME": store}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop", PRICES)


@pytest.fixture
def command(repository: Path, environment: dict[str, str], forked: ForkedCommands) -> Command:
    """Run the command in the repository, without a terminal."""

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return forked.run(words, env={**environment, **more}, cwd=repository, timeout_s=120)

    return run


def shown(command: Command) -> dict[str, Any]:
    """Return the last thread as JSON: its start record and its records."""
    return dict(json.loads(command("thread", "latest", "--json").stdout))


def test_a_prompt_that_no_failing_test_belongs_to_leaves_nothing_behind(
    command: Command, repository: Path
) -> None:
    """The run ends with exit 3 and the failing tests that it found; no branch and no worktree
    stay.
    """
    done = command("run", "solve-issue", "--prompt", UNRELATED, "--agent", "repair")
    assert done.returncode == 3, done.stderr
    assert WANTED in done.stdout + done.stderr
    assert "attended" not in shown(command)["start"]
    assert git(repository, "branch", "--format=%(refname:short)").split() == ["main"]
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_person_on_a_terminal_has_unrelated_tests_repaired(
    command: Command, repository: Path, environment: dict[str, str]
) -> None:
    """The question makes the thread wait, and the answer yes leads to a commit."""
    words = ["run", "solve-issue", "--prompt", UNRELATED, "--agent", "repair"]
    code, seen = on_terminal(words, environment, repository)
    assert code == 8, seen
    assert "Repair them all the same?" in " ".join(seen.split())
    start = shown(command)["start"]
    assert start["attended"] is True
    done = command("answer", "latest", "yes")
    assert done.returncode == 0, done.stdout + done.stderr
    branch = str(start["workspace"]["branch"])
    assert "net + 20" in git(repository, "show", f"{branch}:prices.py")
    assert "a person asked to repair them" in git(repository, "log", "-1", "--format=%B", branch)


def test_an_unrelated_failing_test_does_not_end_a_repair_without_success(
    command: Command, repository: Path
) -> None:
    """The named test is repaired with exit 0; review, commit message and report name the test that
    was left alone, which no edit could repair.
    """
    (repository / "test_prices.py").write_text(PRICES["test_prices.py"] + OTHER)
    git(repository, "commit", "-qam", "Add another test")
    prompt = f"make the tests pass: {WANTED}"
    done = command("run", "solve-issue", "--prompt", prompt, "--agent", "repair")
    assert done.returncode == 0, done.stdout + done.stderr
    thread = shown(command)
    branch = str(thread["start"]["workspace"]["branch"])
    assert "net + 20" in git(repository, "show", f"{branch}:prices.py")
    message = git(repository, "log", "-1", "--format=%B", branch)
    assert f"Left alone, they fail as before: {LEFT}." in message
    assert f"Repaired: {WANTED}." in message
    said = {
        record["role"]: record["content"] for record in thread["records"] if "content" in record
    }
    assert f"Left alone, they fail as before: {LEFT}." in said["reviewer"]
    assert LEFT in said["planner"]
    assert LEFT in said["committer"]


def test_settings_for_one_thread_are_recorded_and_checked_first(
    command: Command, repository: Path, environment: dict[str, str]
) -> None:
    """The start record has them by role; a fork changes them; a wrong key starts no thread, and the
    right ones are completed. With --json or --detach, a person on a terminal is not asked.
    """
    run = ("run", "solve-issue", "--prompt", UNRELATED, "--agent", "repair", "--json")
    wrong = command(*run, "--agent-option", "budget=7")
    assert wrong.returncode == 2
    assert "budgetSeconds, maxCandidates, testSeconds" in wrong.stderr + wrong.stdout
    assert json.loads(command("threads", "--json").stdout) == []
    chosen = ("--agent-option", "budgetSeconds=7", "--agent-option", "coder.maxCandidates=9")
    code, seen = on_terminal([*run, *chosen], environment, repository)
    assert code == 3, seen
    start = shown(command)["start"]
    agents = start["agents"]
    assert agents["default"]["settings"] == {"budgetSeconds": 7}
    assert agents["roles"]["coder"]["settings"] == {"budgetSeconds": 7, "maxCandidates": 9}
    assert "attended" not in start
    fork = ["fork", "latest", "--at", "0", "--agent-option", "budgetSeconds=8", "--detach"]
    code, seen = on_terminal(fork, environment, repository)
    assert code == 0, seen
    forked = shown(command)["start"]
    assert forked["agents"]["default"]["settings"] == {"budgetSeconds": 8}
    assert "attended" not in forked
    line = "uncaged-workflow run solve-issue --agent-option coder.bud"
    completed = command(COMP_WORDS=line, COMP_CWORD="4", _UNCAGED_WORKFLOW_COMPLETE="bash_complete")
    assert "plain,coder.budgetSeconds=" in completed.stdout.split()
