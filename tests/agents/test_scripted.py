"""Answers from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from testbed.roles import request, role_spec
from uncaged_agents.scripted import ScriptedAgent
from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_engine.door.agents import AgentAnswer, AgentFailed
from uncaged_engine.door.effects import Cancel
from uncaged_models.prompts.extract import Extracted, checker, extract

ORDERED = """
- role: planner
  answer: The plan.
  meta: {status: done}
- role: coder
  answer: plain text
"""
BY_ROLE = """
planner: [first plan, second plan]
coder:
  - {answer: coded, usage: {tokens: 3}}
"""


def ask(tmp_path: Path, script: str, role: str = "coder", **more: Any) -> AgentAnswer:
    (tmp_path / "script.yaml").write_text(script, "utf-8")
    agent = ScriptedAgent({"file": str(tmp_path / "script.yaml")})
    return agent.answer(
        request(tmp_path, **({"role": role_spec(role), "worktree": tmp_path / "tree"} | more))
    )


def test_one_list_is_answered_in_order(tmp_path: Path) -> None:
    """The position follows from the answers so far; data is appended as the block that extraction
    looks for.
    """
    text = ask(tmp_path, ORDERED, "planner").text
    assert extract(text, checker(role_spec().schema)) == Extracted(
        meta={"status": "done"}, content="The plan."
    )
    assert ask(tmp_path, ORDERED, "coder", calls=1).text == "plain text"


def test_a_list_per_role_is_answered_by_role(tmp_path: Path) -> None:
    """Other roles' answers do not count."""
    assert ask(tmp_path, BY_ROLE, "planner", calls=5, role_calls=1).text == "second plan"
    assert ask(tmp_path, BY_ROLE, "coder", calls=5) == AgentAnswer(
        text="coded", usage={"tokens": 3}
    )


@pytest.mark.parametrize(
    ("script", "more", "words"),
    [
        (
            ORDERED,
            {"role": "coder"},
            "answer 1 of the script .*script.yaml is for 'planner', but 'coder' was asked",
        ),
        (ORDERED, {"calls": 2}, "has 2 answers; 'coder' asked for number 3"),
        (BY_ROLE, {"role_calls": 1}, "has 1 answers for 'coder'; 'coder' asked for number 2"),
        (BY_ROLE, {"role": "boss"}, "has 0 answers for 'boss'"),
        ("coder: [{fail: no luck}]", {}, "no luck"),
        (
            "coder: [{answer: x, files: {../out: x}}]",
            {},
            "'../out', which is not inside the worktree",
        ),
        ("coder: [{answer: x, files: {/etc/x: x}}]", {}, "not inside the worktree"),
        (
            "coder: [{answer: x, files: {a: x}}]",
            {"worktree": None},
            "this flow's policy gives its roles no workspace",
        ),
        ("coder: [{answer: x, delay_s: 9}]", {"timeout_s": 0.01}, "no answer within 0.01 s"),
    ],
)
def test_what_the_script_does_not_provide_for_fails(
    tmp_path: Path, script: str, more: dict[str, Any], words: str
) -> None:
    """A wrong role names both; nothing is made up and nothing outside the worktree is written."""
    with pytest.raises(AgentFailed, match=words):
        ask(tmp_path, script, **more)
    assert not (tmp_path / "out").exists()


def test_files_are_written_and_deleted(tmp_path: Path) -> None:
    """A demo changes something that a person can look at; a failing entry has changed its files,
    too.
    """
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "old").touch()
    with pytest.raises(AgentFailed):
        ask(
            tmp_path,
            "coder: [{fail: late, files: {src/new.py: 'x = 1'}, delete: [old, never-there]}]",
        )
    assert (tmp_path / "tree" / "src" / "new.py").read_text("utf-8") == "x = 1"
    assert not (tmp_path / "tree" / "old").exists()


def test_a_lack_is_there_once(tmp_path: Path) -> None:
    """A script that a person fixed is read anew on resume."""
    script = "coder: [{lack: the login expired, answer: back again}]"
    with pytest.raises(EnvironmentLacks, match="the login expired"):
        ask(tmp_path, script)
    assert ask(tmp_path, script, attempt=2).text == "back again"


def test_a_delay_ends_with_a_kill(tmp_path: Path) -> None:
    """A kill ends a scripted delay at once."""
    cancel = Cancel()
    cancel.request()
    with pytest.raises(AgentFailed, match="was stopped"):
        ask(tmp_path, "coder: [{answer: x, delay_s: 600}]", timeout_s=1000.0, cancel=cancel)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("just text", "must be a list of answers, or for each role a list"),
        ("[", "not YAML"),
        ("[" * 20_000, "nested deeper than 48 levels"),
        ("- {answer: x}", "entry 1 must name its role"),
        ("- x", "entry 1 must be a mapping"),
        ("- {role: a}", "entry 1 must have one of answer, meta, fail, lack"),
        ("coder: [{answer: x, file: {}}]", "coder, entry 1 has the unknown key 'file'"),
        ("coder: [{answer: x, files: [a]}]", "files must be a mapping of paths to texts"),
        ("coder: [{answer: 3}]", "answer must be text, not 3"),
    ],
)
def test_a_script_that_is_none_is_named_with_its_place(
    tmp_path: Path, script: str, words: str
) -> None:
    """Path, role and number of the entry."""
    with pytest.raises(UsageError) as caught:
        ask(tmp_path, script)
    assert words in str(caught.value)
    assert str(tmp_path / "script.yaml") in str(caught.value)


def test_a_missing_script_is_a_lack_of_the_machine(tmp_path: Path) -> None:
    """Bring it back, then resume."""
    with pytest.raises(EnvironmentLacks, match="cannot be read"):
        ScriptedAgent({"file": str(tmp_path / "none")}).answer(request(tmp_path))
