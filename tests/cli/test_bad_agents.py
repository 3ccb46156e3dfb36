"""Problems of agents: each has its message, exit code and next step, and a thread with a fixable
problem can be resumed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from testbed.bundles import source
from testbed.modelserver import ModelServer, Turn, fails, says, serving
from testbed.turns import argv

pytestmark = pytest.mark.slow

Command = Callable[..., subprocess.CompletedProcess[str]]
AddFlow = Callable[..., str]

ROLE = {
    "description": "d",
    "systemPrompt": "s",
    "extractPrompt": "e",
    "schema": {"type": "object", "required": ["status"]},
}
POET = source(
    "poet",
    """
    step = yield {"role": {"name": "poet"}}
    return {"success": True, "message": "done", "data": step["meta"]}
""",
    kind="workflow",
    roles={"poet": ROLE},
    policy={"role": {}},
).decode()
DONE = '```json\n{"status": "done"}\n```\n'


@pytest.fixture
def poet(flow: AddFlow) -> None:
    flow("poet", POET)


def shell(script: str) -> Mapping[str, object]:
    return {"use": "command", "argv": ["sh", "-c", script]}


def endpoint(server: ModelServer) -> Mapping[str, object]:
    """An agent of this wire starts faster than one with the library of the other."""
    url = server.base_url("openai")
    return {"use": "openai", "baseUrl": url, "model": "tiny", "key": "secret:K"}


def configure(directory: Path, agent: Mapping[str, object], **more: object) -> None:
    (directory / "store" / "config.yaml").write_text(
        json.dumps({"agents": {"mine": agent}, "agent": "mine", **more})
    )


@pytest.mark.usefixtures("poet")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 4, "no agent is configured that could answer for 'poet'"),
        (["--agent", "nobody"], 5, "there is no agent 'nobody'"),
        (["--agent", "command:'x"], 2, "quot"),
    ],
    ids=["no agent", "unknown agent", "malformed"],
)
def test_what_is_known_before_starts_no_thread(
    command: Command, words: list[str], code: int, message: str
) -> None:
    """A problem that is known in advance starts no thread; one line names the alternative."""
    done = command("run", "poet", *words)
    assert (done.returncode, done.stdout, message in done.stderr) == (code, "", True), done.stderr
    assert "--agent" in done.stderr or "agents" in done.stderr or code == 2
    assert command("threads", "--json").stdout.strip() == "[]"


@pytest.mark.usefixtures("poet")
@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("anthropic", "ANTHROPIC_API_KEY, which is not set"),
        (
            "claude",
            "Claude Code is not installed: 'claude' is not on PATH; install it (npm install",
        ),
        ("command:./nope", "is not at that path"),
    ],
)
def test_what_is_not_there_pauses_the_thread(command: Command, agent: str, message: str) -> None:
    """A missing agent gives exit 4 and pauses the thread; the bundle does not see it, and `resume`
    is the next step.
    """
    done = command("run", "poet", "--agent", agent, PATH="/usr/bin:/bin")
    assert (done.returncode, message in done.stdout) == (4, True), done.stdout
    assert "then resume" in done.stdout
    assert "next: uncaged-workflow resume 01" in done.stderr
    assert json.loads(command("threads", "--json").stdout)[0]["status"] == "paused"


@pytest.mark.usefixtures("poet")
@pytest.mark.parametrize(
    ("agent", "message"),  # the other problems of the protocol: tests/agents/test_acp.py
    [
        (
            {"use": "acp", "argv": argv("old")},
            "speaks version 0 of the Agent Client Protocol, but version 1 is needed; bring it up to date",
        ),
        (
            {"use": "program", "row": "claude"},
            "does not know what we ask of it (error: unknown option '--verbose'); bring it up to date",
        ),
    ],
    ids=["old protocol", "old program"],
)
def test_an_agent_that_is_too_old_continues_once_it_is_fixed(
    command: Command, tmp_path: Path, agent: Mapping[str, object], message: str
) -> None:
    """An outdated agent gives exit 4; after the fix the same thread continues."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text(
        "#!/bin/sh\necho \"error: unknown option '--verbose'\" >&2; exit 1\n"
    )
    (tmp_path / "bin" / "claude").chmod(0o755)
    configure(tmp_path, agent)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    done = command("run", "poet", PATH=path)
    assert (done.returncode, message in done.stdout) == (4, True), done.stdout
    if agent["use"] == "acp":
        configure(tmp_path, {"use": "acp", "argv": argv('block:{"status": "done"}')})
    else:
        result = {"type": "result", "subtype": "success", "is_error": False, "result": DONE}
        (tmp_path / "bin" / "claude").write_text(
            f"#!/bin/sh\ncat > /dev/null\ncat <<'END'\n{json.dumps(result)}\nEND\n"
        )
    assert command("resume", "latest", PATH=path).returncode == 0


@pytest.mark.usefixtures("poet")
@pytest.mark.parametrize(
    ("turn", "code", "message"),
    [
        (fails(401, "authentication_error", "invalid key"), 4, "does not accept the key"),
        (fails(404, "not_found_error", "model: tiny"), 4, "has no model 'tiny'"),
        (
            fails(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
            3,
            "lower limits.historyCharacters",
        ),
        (says("I", stop="refusal"), 3, "refuses to answer"),
    ],
    ids=["wrong key", "unknown model", "larger than the context", "refusal"],
)
def test_what_an_endpoint_says_against_it(
    command: Command, tmp_path: Path, turn: Turn, code: int, message: str
) -> None:
    """Problems of keys and models give exit 4; others fail the step, exit 3, and `fork` is the next
    step.
    """
    with serving(lambda _: turn) as server:
        configure(tmp_path, endpoint(server), secrets={"K": {"env": "MY_K"}})
        asked = command("run", "poet", MY_K="x" * 9)
    assert (asked.returncode, message in asked.stdout) == (code, True), asked.stdout
    assert (
        "next: uncaged-workflow resume" if code == 4 else "next: uncaged-workflow fork"
    ) in asked.stderr


@pytest.mark.usefixtures("poet")
def test_a_secret_that_is_not_known_pauses_the_thread(command: Command, tmp_path: Path) -> None:
    """A key without a source gives exit 4, and no request; with one the same thread goes on."""
    with serving([says(DONE)]) as server:
        configure(tmp_path, endpoint(server))
        done = command("run", "poet", MY_K="x" * 9)
        assert (done.returncode, "secret:K is not known" in done.stdout) == (4, True), done.stdout
        assert server.asked == []
        configure(tmp_path, endpoint(server), secrets={"K": {"env": "MY_K"}})
        asked = command("resume", "latest", MY_K="x" * 9)
    assert asked.returncode == 0, asked.stdout


@pytest.mark.usefixtures("poet")
@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (
            shell("cat > /dev/null; head -c 300 /dev/urandom"),
            "gave 3 answers for 'poet' and none could be used",
        ),
        (
            shell(f"printf '{DONE}{DONE.replace('done', 'other')}'".replace("\n", "\\n")),
            "2 fenced json blocks fit and differ",
        ),
    ],
    ids=["no text", "two blocks"],
)
def test_an_answer_that_is_none_fails_the_step(
    command: Command, tmp_path: Path, agent: Mapping[str, object], message: str
) -> None:
    """Exit 3 with the reason; the flow may catch it, and a person may fork from before it."""
    configure(tmp_path, agent)
    done = command("run", "poet")
    assert (done.returncode, message in done.stdout) == (3, True), done.stdout
    assert "next: uncaged-workflow fork 01" in done.stderr
