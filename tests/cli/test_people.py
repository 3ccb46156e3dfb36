"""A person plays a role: from any terminal, on any day, as text, from a file, in an editor, or
field by field.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import source
from testbed.processes import end_workers, workers_of
from testbed.terminal import on_terminal

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
AddFlow = Callable[..., str]

SCHEMA = {
    "type": "object",
    "properties": {
        "status": {"enum": ["fine", "bad"], "description": "How it looks."},
        "places": {"type": "array"},
    },
    "required": ["status"],
}
REVIEW = source(
    "review",
    """
    step = yield {"role": {"name": "reviewer", "prompt": "Mind the tests."}}
    return {"success": True, "message": step["content"], "data": step["meta"]}
""",
    kind="workflow",
    roles={
        "reviewer": {
            "description": "Looks.",
            "systemPrompt": "You are the reviewer.",
            "extractPrompt": "e",
            "schema": SCHEMA,
        }
    },
    policy={"role": {}},
).decode()


@pytest.fixture
def waiting(command: Command, flow: AddFlow, tmp_path: Path) -> str:
    """A thread that waits for the person, whose worker has left."""
    flow("review", REVIEW)
    done = command("run", "review", "--prompt", "Look at it.", "--agent", "person")
    assert done.returncode == 8
    thread = done.stderr.rpartition("uncaged-workflow answer ")[2].split()[0]
    assert end_workers(tmp_path / "store") == []
    assert workers_of(tmp_path / "store") == []
    return thread


def records(command: Command, thread: str) -> list[dict[str, Any]]:
    return list(json.loads(command("thread", thread, "--json").stdout)["records"])


def result(command: Command, thread: str) -> object:
    return next(record["result"]["data"] for record in records(command, thread) if "end" in record)


def asked(command: Command, thread: str) -> dict[str, Any]:
    """Return the thread's last question."""
    return [record for record in records(command, thread) if record.get("control") == "wait"][-1]


def test_the_prompt_is_shown_and_an_answer_that_does_not_fit_changes_nothing(
    command: Command, waiting: str
) -> None:
    """The question is shown; an answer that breaks the schema is refused before it is recorded."""
    shown = command("answer", waiting)
    assert shown.returncode == 2
    assert "reviewer: Looks." in shown.stderr
    assert """'{"status": "fine | bad", "places": ["…"]}'""" in shown.stderr
    prompt = asked(command, waiting)["prompt"]
    assert all(
        words in prompt
        for words in ("You are the reviewer.", "Look at it.", "Mind the tests.", "- `status`")
    )
    refused = command("answer", waiting, '{"status": "perhaps"}')
    assert (refused.returncode, "does not fit" in refused.stderr) == (2, True)
    done = command("answer", waiting, '{"status": "fine"}')
    assert (done.returncode, result(command, waiting)) == (0, {"status": "fine"})


def test_a_text_is_an_answer_like_any_agents(
    command: Command, waiting: str, tmp_path: Path
) -> None:
    """A text with a block that fits is taken whole; from a file or standard input it may be
    long.
    """
    (tmp_path / "answer.md").write_text(
        'Two places.\n\n```json\n{"status": "bad", "places": ["a", "b"]}\n```\n'
    )
    assert command("answer", waiting, "x", "--file", "answer.md").returncode == 2
    done = command("answer", waiting, "--file", "answer.md")
    assert (done.returncode, "Two places." in done.stdout) == (0, True)
    assert result(command, waiting) == {"status": "bad", "places": ["a", "b"]}


def test_a_lone_word_of_a_choice_is_an_answer(command: Command, waiting: str) -> None:
    """A person who says the word of an enum has answered for that field."""
    done = command("answer", waiting, " fine\n")
    assert (done.returncode, result(command, waiting)) == (0, {"status": "fine"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Looks fine to me.", "a text by itself fits no field"),
        ("perhaps", "a text by itself fits no field"),
        ('It is.\n\n```json\n{"status": "perhaps"}\n```', "'perhaps' is not one of"),
        ('```json\n{"places": 3}\n```', "'status' is a required property"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_journalled(
    command: Command, waiting: str, text: str, words: str
) -> None:
    """An answer that does not fit is refused with the reason; the journal has no line of it, and
    the thread still waits.
    """
    before = records(command, waiting)
    refused = command("answer", waiting, text)
    assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr
    assert records(command, waiting) == before
    assert command("thread", waiting).stdout.count("status waiting") == 1


def test_a_form_asks_field_by_field(
    command: Command, waiting: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """On a terminal: the prompt, then each field with its words, a choice until it is one, a list
    line by line.
    """
    code, seen = on_terminal(
        ["answer", waiting], environment, tmp_path, typed=b"perhaps\nbad\na, or so\nb\n\n"
    )
    assert code == 0, seen
    assert all(
        words in seen
        for words in (
            "You are the reviewer.",
            "How it looks.",
            "status (fine | bad)",
            "'perhaps' is not one of fine, bad",
            "places 2",
        )
    )
    assert "End your answer with" not in seen
    assert result(command, waiting) == {"status": "bad", "places": ["a, or so", "b"]}


def test_an_editor_opens_on_the_question(
    command: Command, waiting: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """With an empty block to fill in; what is left of the question is no part of the answer."""
    editor = tmp_path / "editor"
    fills = """s/"status": ""/"status": "fine"/"""
    editor.write_text(
        f'#!/bin/sh\ncp "$1" "$HOME/before"\nsed -i \'{fills}\' "$1"\ntouch -d "+1 hour" "$1"\n'
    )
    editor.chmod(0o755)
    code, seen = on_terminal(
        ["answer", waiting, "--edit"], {**environment, "EDITOR": str(editor)}, tmp_path
    )
    assert code == 0, seen
    assert "# You are the reviewer." in (tmp_path / "before").read_text()
    assert result(command, waiting) == {"status": "fine", "places": []}


def test_agents_lists_who_could_answer_and_why(command: Command, tmp_path: Path) -> None:
    """The default with its reason, what is configured, what is found here, and what could be
    installed.
    """
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "claude").chmod(0o755)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    plain = command("agents", PATH=path).stdout
    assert plain.startswith(
        "default: repair (no agent is configured, so the built-in repair answers; 'claude' is on PATH"
    )
    (tmp_path / "store" / "config.yaml").write_text(
        json.dumps({"agents": {"mine": {"use": "command", "argv": ["x"]}}, "agent": "mine"})
    )
    told = json.loads(command("agents", "--json", PATH=path).stdout)
    assert (told["default"]["name"], told["default"]["reason"]) == ("mine", "config.yaml: agent")
    here = {agent["name"]: agent["here"] for agent in told["agents"]}
    assert (here["mine"], here["claude"], here["codex"]) == ("configured", "yes", "no")
    agents = {
        "m": {"use": "openai", "baseUrl": "http://127.0.0.1:1/v1", "model": "tiny"},
        "c": {"use": "program", "row": "claude"},
    }
    (tmp_path / "store" / "config.yaml").write_text(
        json.dumps({"agents": {**agents, "mine": {"use": "command", "argv": ["x", "-y"]}}})
    )
    whats = {
        one["name"]: one["about"]
        for one in json.loads(command("agents", "--json", PATH=path).stdout)["agents"]
    }
    assert (whats["m"], whats["c"], whats["mine"]) == (
        "tiny at http://127.0.0.1:1/v1",
        "Claude Code",
        "x",
    )
    assert os.fspath(tmp_path) not in json.dumps(told["agents"])
