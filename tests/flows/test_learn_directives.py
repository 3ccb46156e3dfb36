"""Requests and runs of which a flow is made afterwards, and those that only say how."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testbed.bundles import granted, source
from testbed.forked_commands import ForkedCommands
from testbed.modelserver import Turn, calls, says, serving
from testbed.recordings import Commands
from testbed.terminal import InteractiveCommand
from uncaged_bundles.storage.store import Store
from uncaged_cli.capture_proposal import propose_capture
from uncaged_engine.api import Engine

pytestmark = pytest.mark.slow

FIELDS = {
    "type": "object",
    "properties": {
        "genre": {"type": "string"},
        "count": {"type": "integer"},
        "songs": {"type": "array"},
    },
}
CHARTS = source(
    "charts",
    """
    genre, count = input["params"]["genre"], input["params"]["count"]
    yield {"null": {}}
    return {"success": True, "message": f"{count} songs of {genre}", "data": [genre] * count}
""",
    parameters=FIELDS,
)
PLAY = source(
    "play",
    """
    yield {"all": {"effects": []}}
    return {"success": True, "message": "played " + ", ".join(input["params"]["songs"])}
""",
    parameters=FIELDS,
    policy={"all": {}},
)
PLAYED: tuple[Turn, ...] = (
    calls(("charts", {"genre": "blues", "count": 3})),
    calls(("play", {"songs": ["blues"] * 3})),
    says("I did it.\n\n", '```json\n{"status": "done", "message": "played"}\n```\n'),
)
GOAL = "play 3 songs of blues"


@pytest.fixture
def commands(full_store: Store, tmp_path: Path, forked: ForkedCommands) -> Commands:
    """The command on a store with the shipped flows and two more."""
    for text in (CHARTS, PLAY):
        granted(full_store, text)
    return Commands(full_store, tmp_path, os.environ, forked)


@contextmanager
def agent(commands: Commands, *, turns: int = 1, **config: object) -> Iterator[None]:
    """A model that lists the songs, *turns* times, and the settings that name it."""
    with serving(PLAYED * turns) as server:
        settings = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
        config = {"agents": {"mine": settings}, "agent": "mine", **config}
        commands.store.config_path.write_text(json.dumps(config))
        yield


def flows(commands: Commands) -> set[str]:
    return set(Engine(commands.store).registry.read().flows)


def test_a_goal_to_learn_goes_to_the_agent(commands: Commands) -> None:
    """The flow `reason` does it, no pattern reads it, and the command that makes a flow follows;
    without a terminal nothing is saved.
    """
    before = flows(commands)
    with agent(commands):
        done = commands.run("do", "--no-model", f"  Remember how to {GOAL}")
    assert done.code == 0, done.err
    [thread] = [one for one in Engine(commands.store).threads() if one.name == "reason"]
    start = Engine(commands.store).thread(thread.thread_id).start
    assert start["parameters"]["prompt"] == GOAL
    assert done.err.endswith(f"next: uncaged-workflow capture {thread.thread_id}\n")
    assert flows(commands) == before


def test_a_flow_is_made_only_after_a_yes(commands: Commands) -> None:
    """On a terminal a question follows the success; after a no the flows are those of before."""
    before = flows(commands)
    words = ["do", "--no-model", f"learn: {GOAL}"]
    with (
        agent(commands),
        InteractiveCommand(words, commands.environment, commands.directory) as command,
    ):
        command.expect("Make a flow of what the agent did? [y/N]")
        command.type("n\n")
        command.expect("nothing was saved")
        assert command.end() == 0
    assert flows(commands) == before


def test_a_goal_on_a_page_goes_to_the_browser(commands: Commands) -> None:
    """A sentence with an address is one for `web-goal`."""
    done = commands.run("do", "--detach", "--json", "learn: buy a lamp at http://127.0.0.1:9/x")
    assert done.document["reading"] == {
        "calls": [{"flow": "web-goal", "params": {}}],
        "by": "call",
        "learn": True,
    }
    commands.run("kill", done.document["threadId"])


def test_nothing_is_proposed_unless_the_config_says_so(commands: Commands) -> None:
    """`capture: propose` names the command after a success with a trace; a request after `dev:`
    names none, nor does a flow without an agent.
    """
    run = ("run", "reason", "--prompt", GOAL)
    with agent(commands):
        assert "capture" not in commands.run(*run).err
    with agent(commands, turns=2, capture="propose"):
        assert "next: uncaged-workflow capture " in commands.run(*run).err
        learned = commands.run("do", "--no-model", f"dev: run charts {GOAL}")
        assert "capture" not in learned.err
    plain = commands.run("run", "charts", "--param", "genre=x", "--param", "count=1")
    assert (plain.code, "capture" in plain.err) == (0, False)


@pytest.mark.parametrize("succeeds", [True, False])
def test_only_a_thread_with_success_is_proposed(
    commands: Commands, full_store: Store, capsys: pytest.CaptureFixture[str], *, succeeds: bool
) -> None:
    """Of one without success nothing is said; of one without an agent's calls, that they lack."""
    engine = Engine(full_store)
    granted(
        engine.store,
        source("ends", f"    yield {{'null': {{}}}}\n    return {{'success': {succeeds}}}\n"),
    )
    commands.run("run", "ends")
    propose_capture(engine, engine.thread("latest").summary.thread_id, wanted=True)
    assert ("no flow can be made" in capsys.readouterr().err) == succeeds


def test_a_run_is_learned_under_a_name_after_the_questions(commands: Commands) -> None:
    """On a terminal the questions of `capture` follow; the flow does the same without the agent."""
    words = ["run", "reason", "--prompt", GOAL, "--learn", "blues-songs"]
    with (
        agent(commands),
        InteractiveCommand(words, commands.environment, commands.directory) as command,
    ):
        command.expect("[y/N]")
        command.type("y\n")
        assert command.end() == 0, command.seen
    done = commands.run("run", "blues-songs", "--param", "genre=jazz", "--param", "count=2")
    assert "played jazz, jazz" in done.out, done


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["run", "reason", "--learn", "Not A Name"], "is not a flow name"),
        (["run", "reason", "--learn", "x", "--detach"], "--learn asks questions"),
        (["do", "learn:"], "followed by what is to be done"),
        (["do", "learn: x", "--attach", "file"], "no attachments"),
        (["explain", "learn: x"], "the agent of 'reason' gets it"),
    ],
)
def test_what_cannot_be_learned_is_refused(
    commands: Commands, words: list[str], problem: str
) -> None:
    """Nothing is started."""
    (commands.directory / "file").touch()
    done = commands.run(*words)
    assert done.code == 2, done
    assert problem in done.err
    assert Engine(commands.store).threads() == []
