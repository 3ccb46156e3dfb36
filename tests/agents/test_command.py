"""Programs as agents."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from testbed.deadlines import over_at
from testbed.roles import request
from uncaged_agents.command import CommandAgent
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.agents import AgentFailed
from uncaged_engine.door.effects import Cancel

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def shell(script: str, **settings: object) -> CommandAgent:
    return CommandAgent({"argv": ["sh", "-c", script], "graceSeconds": 0.2, **settings})


def answer(agent: CommandAgent, tmp_path: Path, **more: Any) -> str:
    return agent.answer(request(tmp_path, **({"environment": ENVIRONMENT} | more))).text


def failure(agent: CommandAgent, tmp_path: Path, **more: Any) -> AgentFailed:
    with pytest.raises(AgentFailed) as caught:
        answer(agent, tmp_path, **more)
    return caught.value


def test_prompt_in_answer_out(tmp_path: Path) -> None:
    """The prompt on standard input, the answer on standard output, the worktree around it, its
    files changed.
    """
    text = answer(
        shell("cat; pwd; echo changed > file; echo noise >&2"), tmp_path, prompt="Grüße\n"
    )
    assert text == f"Grüße\n{tmp_path}\n"
    assert (tmp_path / "file").read_text("utf-8") == "changed\n"


def test_no_shell_reads_the_words(tmp_path: Path) -> None:
    """Arguments arrive unchanged from the config."""
    agent = CommandAgent(
        {"argv": [sys.executable, "-c", "import sys; print(sys.argv[1:])", "$HOME; rm *", "a b"]}
    )
    assert answer(agent, tmp_path) == "['$HOME; rm *', 'a b']\n"


def test_the_environment_is_the_given_one_and_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables of the worker's own environment do not reach an agent."""
    monkeypatch.setenv("WORKER_SECRET", "x")
    text = answer(
        shell("env", env={"MINE": "m"}), tmp_path, environment={**ENVIRONMENT, "GIVEN": "g"}
    )
    names = {line.partition("=")[0] for line in text.splitlines()}
    assert (
        {"PATH", "GIVEN", "MINE"}
        <= names
        <= {"PATH", "GIVEN", "MINE", "PWD", "SHLVL", "_", "OLDPWD"}
    )


def test_without_a_worktree_it_runs_in_an_empty_directory(tmp_path: Path) -> None:
    """A flow without a workspace gives its agents none, wherever the person happens to be."""
    place = answer(shell("pwd; ls -A"), tmp_path, worktree=None).splitlines()
    assert place == [str(tmp_path / "empty")]


def test_a_failure_has_code_and_both_streams(tmp_path: Path) -> None:
    """The message ends with what the program said last; a long text keeps its tail."""
    failed = failure(shell("echo out; seq 5000 >&2; echo broken >&2; exit 7"), tmp_path)
    assert failed.kind == "agent"
    assert str(failed).startswith("sh failed with exit code 7: …")
    assert str(failed).endswith("broken")
    assert (failed.more["exitCode"], failed.more["stdout"]) == (7, "out\n")
    assert len(str(failed.more["stderr"])) == 4001
    assert str(failure(shell("exit 1"), tmp_path)) == "sh failed with exit code 1: it said nothing"


def test_a_signal_is_in_the_failure(tmp_path: Path) -> None:
    """Killed for want of memory is not exit code -9."""
    failed = failure(shell("kill -9 $$"), tmp_path)
    assert (str(failed), failed.more["signal"]) == ("sh was ended by signal 9", 9)


@pytest.mark.parametrize(("own", "asked"), [(120.0, 600.0), (600.0, 120.0)])
def test_over_time_is_a_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: float, asked: float
) -> None:
    """The shorter of the agent's and the step's limit counts."""
    over_at(monkeypatch, tmp_path / "up")
    agent = shell("cat >&2; echo begun; touch up; echo up >&2; sleep 600", timeoutSeconds=own)
    failed = failure(agent, tmp_path, timeout_s=asked)
    assert failed.kind == "timeout"
    assert str(failed) == "sh gave no answer within 120 s and was stopped"
    assert failed.more["stdout"] == "begun\n"


def test_a_kill_ends_it(tmp_path: Path) -> None:
    """The agent in flight does not run on."""
    cancel = Cancel()
    os.mkfifo(tmp_path / "up")

    def stop() -> None:
        (tmp_path / "up").read_bytes()  # blocks until the program has opened it
        cancel.request()

    stopper = threading.Thread(target=stop, daemon=True)
    stopper.start()
    failed = failure(shell("echo up > up; sleep 600"), tmp_path, cancel=cancel)
    stopper.join()
    assert str(failed) == "sh was stopped"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("no-such-agent", "'no-such-agent' is not on PATH; install it, or set argv"),
        ("/no/agent", "'/no/agent' is not at that path"),
    ],
)
def test_no_such_program_is_a_lack_of_the_machine(tmp_path: Path, program: str, words: str) -> None:
    """Install it, then resume: the step has not failed."""
    with pytest.raises(EnvironmentLacks, match=words):
        answer(CommandAgent({"argv": [program]}), tmp_path)


def test_a_program_that_cannot_run_is_a_lack_of_the_machine(tmp_path: Path) -> None:
    """Found, but for another machine or without its interpreter."""
    program = tmp_path / "agent"
    program.write_text("#!/no/interpreter\n", "utf-8")
    program.chmod(0o755)
    with pytest.raises(EnvironmentLacks, match="cannot be started: No such file"):
        answer(CommandAgent({"argv": [str(program)]}), tmp_path)


def test_bytes_that_are_not_text_are_shown_as_such(tmp_path: Path) -> None:
    """A file in another encoding does not void an hour of work."""
    assert answer(shell(r"printf 'caf\351 \303\251'"), tmp_path) == "caf\\xe9 é"


def test_an_endless_answer_is_a_failure(tmp_path: Path) -> None:
    """A cut answer would lack its block; the message says why."""
    failed = failure(shell("head -c 1100000 /dev/zero"), tmp_path)
    assert str(failed) == "sh answered with more than 1048576 bytes"
