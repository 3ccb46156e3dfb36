"""Verbs that use past threads as tests, through the real command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from testbed.repositories import git, make_repository

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
AddFlow = Callable[..., str]


def test_a_stricter_policy_is_checked_against_past_threads(
    command: Command, flow: AddFlow, tmp_path: Path
) -> None:
    """Each refused effect with its sentence, and exit code 3; 0 if nothing is refused."""
    flow("boom")
    thread = command("run", "boom", "--detach").stdout.strip()
    assert command("thread", thread, "-f").returncode == 3
    (tmp_path / "strict.json").write_text('{"ask": {}}')
    (tmp_path / "same.json").write_text('{"ask": {}, "null": {}}')
    done = command("add", "boom", "--policy", "strict.json", "--check")
    assert done.returncode == 3
    assert done.stdout.startswith(
        f"{thread} step 1: null\n  effect 'null' is not in the bundle's policy; "
    )
    assert "1 past effect of 1 thread of boom: 1 would be refused in 1 thread" in done.stderr
    same = command("add", "boom", "--policy", "same.json", "--check", "--json")
    assert same.returncode == 0
    assert json.loads(same.stdout) == {
        "flow": "boom",
        "policy": {"threads": 1, "effects": 1, "refused": [], "undecided": {}, "unread": {}},
    }
    both = command("add", "boom", "boom.py", "--policy", "strict.json", "--check", "--json")
    assert both.returncode == 3
    found = json.loads(both.stdout)
    assert (found["identical"], found["policy"]["refused"][0]["threadId"]) == (1, thread)


CHECK = ["boom", "--policy", "p.json", "--check"]


@pytest.mark.parametrize(
    ("words", "text", "problem"),
    [
        (["boom"], "{}", "name the FILE of the flow"),
        (["boom", "--policy", "p.json"], "{}", "--policy is for --check"),
        (CHECK, "[" * 9999, "p.json"),
        (CHECK, "[]", "p.json: policy"),
        (CHECK, '{"htp": {}}', "is not an effect"),
        (CHECK, '{"http": {"hosts": ["http://a/"]}}', "p.json: policy.http.hosts"),
    ],
)
def test_a_file_that_is_no_policy_is_refused(
    command: Command, tmp_path: Path, words: list[str], text: str, problem: str
) -> None:
    """Wrong use, and files of other contents."""
    (tmp_path / "p.json").write_text(text)
    done = command("add", *words)
    assert done.returncode == 2, done
    assert problem in done.stderr


CODING = """descriptor = {
    "contract": 1,
    "name": "coding",
    "description": "A note, then one role.",
    "kind": "workflow",
    "roles": {"coder": {"description": "d", "systemPrompt": "s", "extractPrompt": "e", "schema": {"type": "object", "required": ["n"]}}},
    "policy": {"role": {"workspace": "write"}, "null": {}, "sleep": {}},
}


def run(input, options):
    note = yield {"null": {"value": {"wait": 0}}}
    yield {"sleep": {"seconds": note["wait"]}}
    step = yield {"role": {"name": "coder"}}
    return {"success": step["meta"]["n"] > 0, "message": f"n is {step['meta']['n']}"}
"""


@pytest.fixture
def coded(command: Command, flow: AddFlow, tmp_path: Path) -> str:
    """A thread whose agent changed files, its source for forks; agents `one` and `two`."""
    flow("coding", CODING)
    make_repository(tmp_path / "repository")
    entry = "- {role: coder, answer: a, meta: {n: %d}, files: {%s}, usage: {inputTokens: 900, outputTokens: 100, cost: 0.4}}\n"
    (tmp_path / "one.yaml").write_text(entry % (1, "lib/deep.txt: x, new.txt: a"))
    (tmp_path / "two.yaml").write_text(entry % (0, "lib/deep.txt: x, add.py: b"))
    words = ["--workspace", "repository", "--agent", "scripted:one.yaml", "--json", "--detach"]
    thread = str(json.loads(command("run", "coding", *words).stdout)["threadId"])
    assert command("thread", thread, "-f").returncode == 0
    return thread


def test_two_agents_are_compared_on_one_prefix(command: Command, coded: str) -> None:
    """Status, cost, tokens, result and files of both; the exit code is that of the worse one."""
    words = ["compare", coded, "--at", "2", "--agent", "scripted:one.yaml"]
    done = command(*words, "--agent", "coder=scripted:two.yaml")
    assert done.returncode == 3, done
    header, first, second, *rest = done.stdout.splitlines()
    assert header.split() == [
        *("fork", "thread", "status", "steps", "time", "tokens", "cost", "result")
    ]
    assert first.startswith("scripted:one.yaml")
    assert "1,000" in first
    assert "$0.40" in second
    assert second.endswith("n is 0")
    assert "0 steps alike after the first 2" in rest
    at = rest.index("files of coder=scripted:two.yaml against scripted:one.yaml:")
    assert {line.split()[0] for line in rest[at + 1 :]} == {"add.py", "new.txt"}
    assert "scripted:one.yaml    3  coder: " in done.stderr


def test_two_outcomes_are_compared(command: Command, coded: str, tmp_path: Path) -> None:
    """The forks differ by the outcome of the last kept step; the steps after it are alike."""
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps({"wait": 0, "by": name}))
    done = command("compare", coded, "--at", "1", "--set", "a.json", "--set", "b.json", "--json")
    assert done.returncode == 0, done
    found = json.loads(done.stdout)
    assert [one["label"] for one in found["forks"]] == ["a.json", "b.json"]
    assert found["files"] == {"b.json": {"changed": []}}
    assert coded not in [one["threadId"] for one in found["forks"]]


def test_ctrl_c_ends_both_forks(
    command: Command, coded: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """Neither goes on, both are named, and the exit code is 130."""
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps({"wait": 600, "by": name}))
    words = ["compare", coded, "--at", "1", "--set", "a.json", "--set", "b.json"]
    with subprocess.Popen(
        [sys.executable, "-m", "uncaged_cli", *words],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        threads = [process.stderr.readline().split()[-1] for _ in range(2)]
        watched = psutil.Process(process.pid)
        while watched.num_threads() < 3:  # until both forks are followed
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"ended: {', '.join(threads)}" in rest
    for thread in threads:
        shown = json.loads(command("thread", thread, "--json").stdout)
        assert shown["status"] == "killed"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--agent", "scripted:one.yaml"], "name 2 to 8 of --set or of --agent; there is 1"),
        (["--agent", "a", "--agent", "a"], "named twice"),
        (["--agent", "a", "--agent", "b", "--set", "c"], "exclude each other"),
        (["--set", "gone.json", "--set", "other.json"], "no file"),
        (["--agent", "scripted:one.yaml", "--agent", "nosuch"], "nosuch"),
    ],
)
def test_a_comparison_that_cannot_start_leaves_nothing_behind(
    command: Command, coded: str, tmp_path: Path, words: list[str], problem: str
) -> None:
    """If one fork is refused, none is started: there is no further thread, worktree or branch."""

    def kept() -> tuple[list[Path], str]:
        worktrees = sorted((tmp_path / "store" / "work").glob("*"))
        return worktrees, git(tmp_path / "repository", "for-each-ref")

    before = kept()
    done = command("compare", coded, "--at", "2", *words)
    assert done.returncode in (1, 2, 4, 5), done
    assert problem in done.stderr
    left = json.loads(command("threads", "--json").stdout)
    assert [one["threadId"] for one in left] == [coded]
    assert kept() == before
