"""Script flows made of the commands and file changes of an agent: run again without it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import granted, source
from testbed.forked_commands import ForkedCommands
from testbed.modelserver import Turn, calls, says, serving
from testbed.recordings import Commands
from testbed.repositories import git, make_repository
from testbed.steering import finish
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

LOG = "".join(f"{'ERROR' if line % 3 == 0 else 'INFO'} line {line}\n" for line in range(12))
FILES = {"app.log": LOG, "web.log": "ERROR a\nWARN b\nWARN c\n", "src/port.py": "PORT = 80\n"}
ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
SCHEMA = {
    "type": "object",
    "properties": {"status": {"enum": ["done"]}, "message": {"type": "string"}},
}
ROLE = {
    "description": "Works.",
    "systemPrompt": "Work.",
    "extractPrompt": "Say.",
    "schema": SCHEMA,
}


def worker(steps: int) -> bytes:
    """Return a flow whose role works in a workspace, once for each step."""
    body = f"""
    for _ in range({steps}):
        step = yield {{"role": {{"name": "worker"}}}}
    return {{"success": True, "message": step["meta"]["message"], "data": None}}
"""
    policy = {"role": {"workspace": "write"}}
    return source(
        f"work{steps}", body, roles={"worker": ROLE}, policy=policy, parameters={"type": "object"}
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository", FILES)


@pytest.fixture
def engine(full_store: Store) -> Engine:
    engine = Engine(full_store)
    granted(engine.store, worker(1))
    granted(engine.store, worker(2))
    return engine


@pytest.fixture
def commands(engine: Engine, repository: Path, forked: ForkedCommands) -> Commands:
    return Commands(engine.store, repository, os.environ, forked)


def agent_did(
    engine: Engine, repository: Path, prompt: str, answer: str, *turns: Turn, steps: int = 1
) -> ThreadId:
    """Run a thread whose agent does this; afterwards there is no model any more."""
    block = f"```json\n{json.dumps({'status': 'done', 'message': answer})}\n```\n"
    done = says(f"{answer}\n\n", block)
    with serving([*turns, done] * steps) as server:
        agent = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
        config = {"agents": {"mine": agent}, "agent": "mine", **SECRETS}
        engine.store.config_path.write_text(json.dumps(config))
        options = RunOptions(workspace=repository, environment=ENVIRONMENT)
        thread = engine.run(f"work{steps}", prompt=prompt, options=options)
        finish(engine, thread)
    return thread


SECRETS = {"secrets": {"SHOP": {"env": "SHOP_TOKEN"}}}


def run(command: str) -> tuple[str, Mapping[str, object]]:
    return "run", {"command": command}


def capture(commands: Commands, thread: str, *options: str) -> Mapping[str, Any]:
    done = commands.run("capture", thread, "--name", "captured", "--accept", "--json", *options)
    assert done.code == 0, done.err
    found: Mapping[str, Any] = done.document
    return found


def repeat(engine: Engine, directory: Path, **params: object) -> Mapping[str, Any]:
    options = RunOptions(directory=directory, environment=ENVIRONMENT)
    thread = engine.run("captured", prompt="", params=params, options=options)
    found: Mapping[str, Any] = finish(engine, thread)
    return found


def test_a_shell_task_is_captured_and_run_without_the_agent(
    engine: Engine, commands: Commands, repository: Path
) -> None:
    """Detours are left out, values of the prompt are parameters, the proof runs in fresh files."""
    thread = agent_did(
        engine,
        repository,
        "Count the lines with ERROR in app.log and write the number to count.txt",
        "app.log has 4 lines with ERROR.",
        calls(run("ls")),
        calls(run("cat aap.log")),
        calls(run("grep -c ERROR app.log > count.txt && cat count.txt")),
        calls(run("cat count.txt")),
    )
    found = capture(commands, thread)
    assert found["proof"] == {"state": "proved"}, found
    assert found["parameters"] == {"path": "app.log", "target": "count.txt", "text": "ERROR"}
    assert [line.partition(": ")[2] for line in found["leftOut"]] == [
        "nothing used its result",
        "it failed: exit code 1",
    ]
    assert repeat(engine, repository)["message"].startswith("4")
    done = repeat(engine, repository, path="web.log", text="WARN", target="warnings.txt")
    assert done["message"].startswith("2")
    assert (repository / "warnings.txt").read_text() == "2\n"
    assert git(repository, "status", "--porcelain") == "?? count.txt\n?? warnings.txt\n"


def test_changes_of_files_are_captured_with_commands(
    engine: Engine, commands: Commands, repository: Path
) -> None:
    """The tools of the agent replace and make files as its commands do."""
    thread = agent_did(
        engine,
        repository,
        "Set the port in src/port.py to 8080 and note it in docs/ports.md",
        "The port is 8080.",
        calls(("read", {"path": "src/port.py"})),
        calls(("edit", {"path": "src/port.py", "old": "PORT = 80", "new": "PORT = 8080"})),
        calls(("write", {"path": "docs/ports.md", "text": "The port is 8080.\n"})),
        calls(run("cat src/port.py")),
    )
    found = capture(commands, thread)
    assert found["proof"] == {"state": "proved"}, found
    assert found["steps"] == 2
    done = repeat(engine, repository, number=9090)
    assert done["success"], done
    assert (repository / "src/port.py").read_text() == "PORT = 9090\n"
    assert (repository / "docs/ports.md").read_text() == "The port is 9090.\n"


def test_a_result_of_the_clock_is_the_reason_of_an_unproved_flow(
    engine: Engine, commands: Commands, repository: Path
) -> None:
    """A proof with another result is refused; with the clock in it, the flow is unproved."""
    turn = calls(run("date +%s%N > stamp.txt"))
    thread = agent_did(engine, repository, "Note the time", "done", turn)
    found = capture(commands, thread)
    assert found["proof"]["state"] == "unproved"
    assert "its result depends on the clock (date)" in found["proof"]["reason"]
    other = agent_did(
        engine, repository, "Note a", "done", calls(run("cat /proc/sys/kernel/random/uuid > a.txt"))
    )
    refused = commands.run("capture", other, "--name", "other", "--accept")
    assert refused.code == 1, refused.err
    assert "the file a.txt has another content" in refused.err
    assert engine.registry.flow("other") is None


def test_what_a_command_sends_is_not_sent_again(
    engine: Engine, commands: Commands, repository: Path
) -> None:
    """The flow is unproved at that step."""
    thread = agent_did(
        engine,
        repository,
        "Note a and send it",
        "done",
        calls(run("echo a > note.txt")),
        calls(run("curl -s -m 1 -d @note.txt http://127.0.0.1:9/ || true")),
    )
    found = capture(commands, thread)
    assert found["proof"]["state"] == "unproved"
    assert found["proof"]["step"] == 2


def test_a_secret_in_a_trace_and_in_the_prompt(
    engine: Engine, commands: Commands, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace has its name only; the flow gets it for its programs. Its name and description,
    which follow from the prompt, have the name of the secret as well.
    """
    secret = "very-secret-0123"
    environment = {**ENVIRONMENT, "SHOP_TOKEN": secret}
    monkeypatch.setitem(commands.environment, "SHOP_TOKEN", secret)
    monkeypatch.setattr(f"{__name__}.ENVIRONMENT", environment)
    thread = agent_did(
        engine,
        repository,
        f"Write header {secret} into auth.txt",
        "done",
        calls(run(f"printf '%s' {secret} | wc -c > auth.txt")),
        calls(run(f"echo {secret}")),
    )
    shown = commands.run("thread", "show", thread, "--trace", "--json")
    assert secret not in shown.out.replace(f"header {secret} into", "")
    assert "secret:SHOP" in shown.out
    done = commands.run("capture", thread, "--accept", "--json")
    assert done.code == 0, done.err
    found = done.document
    assert found["flow"] == "write-header-secret-shop-into-auth-txt"
    assert "Write header secret:SHOP into auth.txt" in found["wording"]["description"]
    assert secret not in done.out + done.err
    assert found["parameters"]["shop"] == "secret:SHOP"
    assert found["proof"] == {"state": "proved"}, found
    bundle = engine.bundle(found["flow"])
    assert secret.encode() not in bundle.source
    assert bundle.descriptor.policy.limits["script"]["secrets"] == {"SHOP": ["wc"]}


def test_several_steps_need_a_choice(engine: Engine, commands: Commands, repository: Path) -> None:
    """The message names the steps; a step starts from the files that the one before it left."""
    turn = calls(run("echo line >> app.log"))
    thread = agent_did(engine, repository, "Add a line", "done", turn, steps=2)
    refused = commands.run("capture", thread, "--name", "captured", "--accept")
    assert refused.code == 2
    assert "steps 1, 2 of thread" in refused.err
    assert capture(commands, thread, "--step", "2")["proof"] == {"state": "proved"}


def test_the_removal_of_a_home_is_refused(
    engine: Engine, commands: Commands, repository: Path
) -> None:
    """And a path outside of the workspace is in the policy that a person is shown."""
    thread = agent_did(
        engine, repository, "Delete my home", "done", calls(run("rm -rf ~/ || true"))
    )
    refused = commands.run("capture", thread, "--accept")
    assert refused.code == 1
    assert "a whole home" in refused.err
    other = agent_did(
        engine, repository, "Clean", "done", calls(run("rm -f /tmp/uncaged-no-such-file a"))
    )
    shown = commands.run("capture", other, "--name", "clean")
    assert shown.code == 1
    assert "write: ., /tmp" in shown.err
    assert engine.registry.flow("clean") is None
