"""Coding programs by their rows of the table, against fake programs on PATH that speak the same
formats, well and badly.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from testbed.journals import NOW_MS
from testbed.processes import await_end
from testbed.roles import request, role_spec
from uncaged_agents.program.agent import ProgramAgent
from uncaged_agents.program.arguments import MAX_ARGUMENT_BYTES
from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_bundles.ids import new_thread_id
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import AgentAnswer, AgentAway, AgentFailed, Repair
from uncaged_engine.door.effects import Cancel
from uncaged_engine.processes.leftovers import MARK

pytestmark = pytest.mark.slow  # each starts a Python or two

FAKES = Path(__file__).parents[1] / "testbed" / "fake_programs"
STRICT = {
    "type": "object",
    "properties": {
        "status": {"type": "string"},
        "files": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["status", "files"],
    "additionalProperties": False,
}


@dataclass(slots=True, kw_only=True)
class Stage:
    """Return the directory of a fake program."""

    root: Path
    key: str = field(default_factory=lambda: f"{new_thread_id(NOW_MS, os.urandom(10))}/1")
    told: list[Mapping[str, object]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def worktree(self) -> Path:
        return self.root / "worktree"

    def ask(self, row: str, part: Mapping[str, object] | None = None, **more: Any) -> AgentAnswer:
        (self.root / "play").write_text(json.dumps(part or {}))
        agent = ProgramAgent({"row": row, "graceSeconds": 0.5, **more.pop("settings", {})})
        environment = {
            "PATH": f"{FAKES}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "PLAY": str(self.root / "play"),
            "CALLS": str(self.root / "calls"),
            "UP": str(self.root / "up"),
            "HOME": str(self.root),
            MARK: self.key,
        }
        usual = {
            "key": self.key,
            "worktree": self.worktree,
            "scratch": self.root / "scratch",
            "environment": environment,
            "progress": self.told.append,
            "remark": self.remarks.append,
        }
        return agent.answer(request(self.root, **(usual | more)))

    def failure(
        self, row: str, part: Mapping[str, object] | None = None, **more: Any
    ) -> AgentFailed:
        with pytest.raises(AgentFailed) as caught:
            self.ask(row, part, **more)
        return caught.value

    def lack(self, row: str, part: Mapping[str, object] | None = None, **more: Any) -> str:
        with pytest.raises(EnvironmentLacks) as caught:
            self.ask(row, part, **more)
        return str(caught.value)

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.root / "calls").read_text().splitlines()]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(root=tmp_path)
    stage.worktree.mkdir()
    (tmp_path / "scratch").mkdir()
    return stage


def test_claude_answers_with_usage_cost_and_session(stage: Stage) -> None:
    """The prompt is read from standard input; cached tokens are a part of the input; tool, file and
    text are reported as they come.
    """
    answer = stage.ask("claude", {"files": {"new": "x"}}, prompt="Grüße")
    assert (answer.text, answer.session) == ("Done.", "s-2")
    assert answer.usage == {
        "inputTokens": 100,
        "cachedTokens": 70,
        "outputTokens": 5,
        "turns": 3,
        "cost": 0.125,
    }
    assert stage.told == [{"text": "I edit it.", "tool": "Edit", "file": "add.py"}]
    assert (stage.worktree / "new").read_text() == "x"
    call = stage.calls[0]
    assert (call["prompt"], call["session"], call["cwd"]) == ("Grüße", None, str(stage.worktree))
    assert "--permission-mode" in call["argv"]


def test_rights_follow_the_workspace_and_arguments_the_config(stage: Stage) -> None:
    """A role that only reads gets no tool to edit with; a person may say it otherwise."""
    stage.ask("claude", writable=False)
    stage.ask("claude", settings={"rights": ["--mine"], "arguments": ["--model", "haiku"]})
    first, second = (call["argv"][4:] for call in stage.calls)
    assert first == [
        "--allowedTools",
        "Read,Glob,Grep",
        "--disallowedTools",
        "Edit,Write,NotebookEdit",
    ]
    assert second == ["--mine", "--model", "haiku"]


@pytest.mark.parametrize(
    ("row", "rights", "more", "expected"),
    [
        (
            "claude",
            Rights(tools=frozenset({"read", "search", "commit"})),
            {},
            [
                *("--allowedTools", "Read,Grep,Glob,Bash(git add:*),Bash(git commit:*)"),
                *("--disallowedTools", "Edit,NotebookEdit,Write,WebFetch,WebSearch"),
            ],
        ),
        (
            "claude",
            Rights(network=True),
            {"writable": False},
            [
                "--allowedTools",
                "Glob,Read,Grep,WebFetch,WebSearch",
                "--disallowedTools",
                "Edit,NotebookEdit,Write,Bash",
            ],
        ),
        (
            "claude",
            Rights(tools=frozenset()),
            {},
            ["--disallowedTools", "Glob,Read,Grep,Edit,NotebookEdit,Write,Bash,WebFetch,WebSearch"],
        ),
        (
            "gemini-headless",
            Rights(tools=frozenset({"read", "edit"})),
            {},
            ["--approval-mode", "default", "--allowed-tools", "replace"],
        ),
        (
            "gemini-headless",
            Rights(tools=frozenset({"read"})),
            {},
            ["--approval-mode", "default", "-p"],
        ),
        ("codex", Rights(tools=frozenset({"read", "search"})), {}, ["--sandbox", "read-only"]),
        ("codex", Rights(tools=frozenset({"run"})), {}, ["--sandbox", "danger-full-access"]),
    ],
    ids=[
        "claude",
        "claude reads",
        "claude has nothing",
        "gemini",
        "gemini reads",
        "codex reads",
        "codex runs",
    ],
)
def test_tools_of_a_policy_are_passed_on(
    stage: Stage, row: str, rights: Rights, more: dict[str, Any], expected: list[str]
) -> None:
    """The program's own options are used where it has some; a role that changes and runs nothing
    gets a reader's.
    """
    stage.ask(row, rights=rights, **more)
    assert " ".join(expected) in " ".join(stage.calls[0]["argv"])


def test_a_person_s_rights_go_before_the_policy_s_tools(stage: Stage) -> None:
    """The setting ``rights`` replaces the options of the row."""
    stage.ask("claude", rights=Rights(tools=frozenset({"read"})), settings={"rights": ["--mine"]})
    assert stage.calls[0]["argv"][4:] == ["--mine"]


def test_is_error_counts_not_the_exit_code(stage: Stage) -> None:
    """Failures of the service arrive as success with exit 0; what was used up is kept."""
    failed = stage.failure(
        "claude", {"result": {"is_error": True, "result": "API Error: 529 overloaded"}}
    )
    assert str(failed) == "Claude Code failed: API Error: 529 overloaded"
    assert isinstance(failed, AgentAway)
    assert (failed.more["exitCode"], failed.more["usage"]) == (
        0,
        {"inputTokens": 100, "cachedTokens": 70, "outputTokens": 5, "turns": 3, "cost": 0.125},
    )
    limit = stage.failure("claude", {"result": {"subtype": "error_max_turns", "result": None}})
    assert str(limit) == "Claude Code ended without a result: error_max_turns"


def test_a_login_that_is_missing_is_a_lack_of_the_machine(stage: Stage) -> None:
    """Whichever way a program says it; the message names its own command, and the variable that
    would do instead.
    """
    said = stage.lack(
        "claude",
        {"result": {"is_error": True, "result": "Invalid API key · Please run /login"}, "exit": 1},
    )
    assert said == (
        "Claude Code: Invalid API key · Please run /login; run `claude` once and log in with /login, or set ANTHROPIC_API_KEY and name it"
        " under environment in config.yaml, then resume"
    )
    assert stage.lack("gemini-headless", {"error": "no auth", "exit": 41}).startswith(
        "Gemini CLI, headless: it is not logged in; run"
    )
    assert "cursor-agent login" in stage.lack(
        "cursor-agent-headless", {"exit": 1, "stderr": "Error: Authentication required."}
    )
    assert "codex login" in stage.lack("codex", {"failed": "unexpected status 401 Unauthorized"})


def test_what_is_missing_or_too_old_is_a_lack_of_the_machine(stage: Stage) -> None:
    """The message says how it is installed; a program that does not know our options is not asked
    twice.
    """
    said = stage.lack("claude", environment={"PATH": "/usr/bin:/bin", MARK: stage.key})
    assert said.startswith(
        "Claude Code is not installed: 'claude' is not on PATH; install it (npm install -g @anthropic-ai/claude-code)"
    )
    said = stage.lack(
        "hermes-headless", {"exit": 2, "stderr": "hermes: error: unrecognized arguments: --quiet"}
    )
    assert said.startswith("Hermes Agent, headless does not know what we ask of it (")


def test_codex_answers_with_its_last_message(stage: Stage) -> None:
    """Codex gets the session to resume behind its options; a failed turn has its own reason."""
    answer = stage.ask("codex", session="t-0")
    assert (answer.text, answer.session) == ("Last.", "t-0")
    assert answer.usage == {"inputTokens": 100, "cachedTokens": 60, "outputTokens": 7}
    assert stage.told[0] == {"tool": "pytest -q"}
    assert stage.calls[0]["argv"] == [
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--sandbox",
        "danger-full-access",
        "resume",
        "t-0",
        "-",
    ]
    assert (
        str(stage.failure("codex", {"failed": "stream disconnected"}))
        == "OpenAI Codex failed with exit code 1: stream disconnected"
    )


def test_a_strict_schema_is_handed_over_and_no_other(stage: Stage) -> None:
    """Services refuse schemas with optional fields; those stay in the prompt alone."""
    answer = stage.ask("codex", role=role_spec(schema=STRICT))
    assert json.loads(answer.text) == {"schema": ["files", "status"]}
    assert stage.ask("codex").text == "Last."


def test_gemini_adds_up_its_models(stage: Stage) -> None:
    """Lines before the object do not matter; the instruction precedes the prompt's words."""
    answer = stage.ask("gemini-headless", session="g-0", prompt="Do this.")
    assert (answer.text, answer.session) == ("Done.", "g-1")
    assert answer.usage == {"inputTokens": 101, "cachedTokens": 40, "outputTokens": 11, "turns": 3}
    assert (stage.calls[0]["prompt"], stage.calls[0]["session"]) == (
        "Do this.\n\nDo what stands above.",
        "g-0",
    )


@pytest.mark.parametrize(
    ("code", "words"), [(42, "it refused its input"), (53, "it reached its limit of turns")]
)
def test_exit_codes_have_the_meaning_of_the_table(stage: Stage, code: int, words: str) -> None:
    """42 and 53 are the prompt's and the limit's, not the machine's."""
    failed = stage.failure("gemini-headless", {"error": "no", "exit": code})
    assert str(failed) == f"Gemini CLI, headless failed: {words} (exit code {code}): no"
    assert failed.more["exitCode"] == code


def test_cursor_and_hermes_get_the_prompt_as_an_argument(stage: Stage) -> None:
    """A prompt that is too long for an argument is put into a file that the argument names."""
    assert stage.ask("cursor-agent-headless", prompt="Do it.").session == "c-1"
    answer = stage.ask("hermes-headless", prompt="x" * (MAX_ARGUMENT_BYTES + 1))
    assert (answer.text, answer.session, answer.usage) == ("Done.\n", "h-1", None)
    short, long = (call["prompt"] for call in stage.calls)
    assert short == "Do it."
    assert long.startswith("Read the file ")
    assert Path(long.split()[3]).read_text() == "x" * (MAX_ARGUMENT_BYTES + 1)


def test_a_session_that_goes_on_hears_less_and_one_that_is_gone_hears_everything(
    stage: Stage,
) -> None:
    """A repair in its own session is a short question; without it, the whole prompt."""
    repair = Repair(answer="a", problem="no block", wording="Put it right.")
    stage.ask("claude", prompt="Everything.", session="s-1", repair=repair)
    gone = {"gone": ["s-1"], "gone_words": "No conversation found with session ID: s-1"}
    stage.ask("claude", gone, prompt="Everything.", session="s-1", repair=repair)
    assert [(call["prompt"], call["session"]) for call in stage.calls] == [
        ("Put it right.", "s-1"),
        ("Put it right.", "s-1"),
        ("Everything.", None),
    ]
    assert stage.remarks == [
        "stderr: No conversation found with session ID: s-1",
        "session s-1 is gone; a new one begins",
    ]


@pytest.mark.parametrize(
    ("row", "part", "message"),
    [
        ("claude", {"no_result": True}, "Claude Code ended without a result: "),
        (
            "claude",
            {"plain": True, "stdout": "{no json\n"},
            "Claude Code ended without a result: what it printed cannot be read: {no json",
        ),
        ("claude", {"plain": True}, "Claude Code ended without a result: it said nothing"),
        ("claude", {"result": {"result": 7}}, "Claude Code ended without a result: success"),
        ("claude", {"exit": 3, "stderr": "crash\n"}, "Claude Code failed with exit code 3: Done."),
        ("claude", {"no_result": True, "signal": "SIGKILL"}, "Claude Code was ended by signal 9: "),
        (
            "gemini-headless",
            {"plain": True, "stdout": '{"response": "Do'},
            "Gemini CLI, headless ended without a result: what it pri",
        ),
        (
            "gemini-headless",
            {"plain": True, "stdout": '{"response": null}'},
            "Gemini CLI, headless ended without a result: ",
        ),
        (
            "cursor-agent-headless",
            {"exit": 1, "stderr": "network down\n"},
            "Cursor, headless failed with exit code 1: network down",
        ),
    ],
)
def test_what_is_no_answer_is_a_failure(
    stage: Stage, row: str, part: dict[str, object], message: str
) -> None:
    """Output that breaks off, is no JSON, or lacks the answer is never taken for one."""
    assert str(stage.failure(row, part)).startswith(message)


def test_a_program_over_time_is_ended(stage: Stage) -> None:
    """A program over its time limit fails with its output until then."""
    os.mkfifo(stage.root / "up")
    with os.fdopen(os.open(stage.root / "up", os.O_RDWR)):
        failed = stage.failure("claude", {"hang": True, "no_result": True}, timeout_s=1.5)
    assert (failed.kind, str(failed)) == (
        "timeout",
        "Claude Code gave no answer within 1.5 s and was stopped",
    )


def test_a_kill_ends_it(stage: Stage) -> None:
    """A kill ends a program at once, with the processes that it started."""
    os.mkfifo(stage.root / "up")
    cancel = Cancel()

    def stop() -> None:
        (stage.root / "up").read_bytes()
        cancel.request()

    stopper = threading.Thread(target=stop)
    stopper.start()
    failed = stage.failure("claude", {"hang": True}, cancel=cancel)
    stopper.join()
    assert str(failed) == "Claude Code was stopped"


def test_a_program_that_floods_us_is_ended(stage: Stage) -> None:
    """A line without end is not collected."""
    assert (
        str(stage.failure("claude", {"flood": True}))
        == "Claude Code was stopped: it printed more than 16777216 bytes without an end"
    )


def test_what_it_leaves_running_is_ended(stage: Stage) -> None:
    """A program may start a server in a session of its own; after the answer it is gone."""
    wrapper = stage.root / "bin"
    wrapper.mkdir()
    (wrapper / "claude").write_text(
        f'#!/bin/sh\nsetsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! > "$HOME/left"\nexec {FAKES}/claude "$@"\n'
    )
    (wrapper / "claude").chmod(0o755)
    path = f"{wrapper}:{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = {
        "PATH": path,
        "HOME": str(stage.root),
        "PLAY": str(stage.root / "play"),
        "CALLS": str(stage.root / "calls"),
        MARK: stage.key,
    }
    stage.ask("claude", environment=environment)
    assert await_end(int((stage.root / "left").read_text()))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "needs row"),
        ({"row": "gemini"}, "no row 'gemini'"),
        ({"row": "claude", "argument": []}, "did you mean 'arguments'"),
    ],
)
def test_settings_are_checked_before_anything_runs(settings: dict[str, object], words: str) -> None:
    """A wrong setting is an error at once, with the nearest right one."""
    with pytest.raises(UsageError, match=words):
        ProgramAgent(settings)
