"""Every verb with closed standard descriptors and from a removed working directory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from testbed.forked_commands import ForkedCommands
from uncaged_bundles.errors import UsageError
from uncaged_cli.catalog import VERBS

from .conftest import bundle_text, register_flow

pytestmark = pytest.mark.slow

WORDS: Mapping[str, str] = {
    "demo": "demo {new}",
    "init": "init {new}",
    "doctor": "doctor",
    "agents": "agents",
    "keys": "keys",
    "completion": "completion bash",
    "add": "add echo echo.py --accept",
    "build": "build echo.py",
    "edit": "edit echo",
    "test": "test echo",
    "list": "list",
    "show": "show echo",
    "tools": "tools",
    "mcp": "mcp config",
    "graph": "graph echo",
    "history": "history echo",
    "diff": "diff echo",
    "rollback": "rollback echo",
    "proposals": "proposals",
    "proposal": "proposal show 01",
    "enable": "enable echo",
    "explain": "explain echo",
    "pack": "pack list",
    "do": "do @list",
    "conversation": "conversation list",
    "shell": "shell",
    "browser": "browser tabs",
    "record": "record order --import echo.py",
    "capture": "capture latest",
    "fix": "fix latest",
    "action": "action echo",
    "memory": "memory list",
    "notify": "notify list",
    "random": "random",
    "token": "token",
    "feedback": "feedback good",
    "patterns": "patterns suggest echo",
    "constructions": "constructions list",
    "grammar": "grammar check echo.py",
    "model": "model",
    "serve": "serve --help",
    "disable": "disable other",
    "remove": "remove other",
    "run": "run echo --prompt x",
    "threads": "threads",
    "ps": "ps",
    "log": "log",
    "thread": "thread latest",
    "pause": "pause latest",
    "resume": "resume latest",
    "answer": "answer latest x",
    "kill": "kill latest",
    "fork": "fork latest",
    "compare": "compare latest --at 0 --agent a --agent b",
    "verify": "verify latest",
    "regress": "regress echo",
    "schedule": "schedule show echo",
    "schedules": "schedules",
    "due": "due",
    "archive": "archive --older-than 9d",
    "prune": "prune --older-than 9d",
    "export": "export latest --output {new}",
    "import": "import echo.py",
    "work": "work --store .",
    "queue": "queue reset --all --store .",
    "queues": "queues --store .",
    "store": "store check .",
}
CLOSED = ("<&-", ">&-", "2>&-", "<&- >&- 2>&-")
GONE = "error: the current directory was removed; change to one that exists and try again\n"


def through_shell(
    line: str, environment: Mapping[str, str], directory: Path
) -> subprocess.CompletedProcess[str]:
    """Run the command as a shell line, whose standard input is empty."""
    command = ["bash", "-c", line.replace("COMMAND", f"{sys.executable} -m uncaged_cli")]
    pipe = subprocess.PIPE
    return subprocess.run(
        command,
        env=environment,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        check=False,
    )


def is_in_order(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether the command did its work, or said in words why not."""
    return (
        done.returncode in range(9)
        and "Traceback" not in done.stderr
        and "this is a bug" not in done.stderr
    )


@pytest.fixture
def used(environment: dict[str, str], tmp_path: Path, forked: ForkedCommands) -> dict[str, str]:
    """The environment of a person with two flows and a thread."""
    for name in ("echo", "other"):
        text = bundle_text(name if name == "echo" else "sulk")
        (tmp_path / f"{name}.py").write_text(text)
        register_flow(environment, name, text.encode())
    words = ("run", "echo", "--prompt", "x")
    assert forked.run(words, env=environment, cwd=tmp_path, timeout_s=120).returncode == 0
    return environment


def test_the_table_has_every_verb() -> None:
    """A new verb is tried, too."""
    assert set(WORDS) == set(VERBS)


def test_every_verb_works_with_closed_descriptors(used: dict[str, str], tmp_path: Path) -> None:
    """No verb meets a bug when standard input, output and error are all closed."""
    for verb, words in WORDS.items():
        closed = through_shell(
            f"COMMAND {words.format(new=f'new-{verb}')} {CLOSED[-1]}", used, tmp_path
        )
        assert is_in_order(closed), (verb, closed)


def test_every_verb_works_from_a_removed_directory_or_says_why_not(
    used: dict[str, str], tmp_path: Path
) -> None:
    """A verb that needs the current directory names that in one line."""
    for verb, words in WORDS.items():
        (tmp_path / "gone").mkdir()
        line = f"cd gone && rmdir ../gone && COMMAND {words.format(new=tmp_path / f'new-{verb}')}"
        removed = through_shell(line, used, tmp_path)
        assert is_in_order(removed), (verb, removed)
        assert removed.stderr == GONE or "the current directory" not in removed.stderr, (
            verb,
            removed,
        )


@pytest.mark.parametrize("verb", ["run", "doctor", "threads"])
def test_each_descriptor_may_be_closed_alone(
    used: dict[str, str], tmp_path: Path, verb: str
) -> None:
    """A pipe or a file that the command opens never takes the place of a standard stream."""
    shown = [
        through_shell(f"COMMAND {WORDS[verb]} {redirection}", used, tmp_path)
        for redirection in ("", *CLOSED)
    ]
    usual, *others = shown
    for redirection, closed in zip(CLOSED, others, strict=True):
        assert closed.returncode == usual.returncode == 0, (redirection, closed, usual)
        assert closed.stderr == ("" if "2>" in redirection else usual.stderr), redirection
        if ">&-" not in redirection.replace("2>&-", ""):
            assert closed.stdout.count("\n") == usual.stdout.count("\n"), redirection


def test_a_run_from_a_removed_directory_says_so(used: dict[str, str], tmp_path: Path) -> None:
    """The reason is one line, with what to do, and no report of a bug."""
    (tmp_path / "gone").mkdir()
    done = through_shell("cd gone && rmdir ../gone && COMMAND run echo --prompt x", used, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (UsageError.exit_code, "", GONE)
