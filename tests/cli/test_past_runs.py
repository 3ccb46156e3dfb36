"""Verbs that use past threads as tests, through the real command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

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
