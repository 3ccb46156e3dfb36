"""Queue of agents over all stores of a machine: the waiting are shown, and a thread does not wait
for its own agents.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from testbed.bundles import granted, source
from testbed.modelserver import calls, says, serving
from testbed.steering import finish, settle, wait_for, written
from uncaged_agents.slots import AgentSlot, slots_directory
from uncaged_bundles.authoring import END, START, Role, Workflow
from uncaged_bundles.builders import build_workflow
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, Event, RunOptions
from uncaged_engine.door.effects import Cancel

pytestmark = pytest.mark.slow

SCHEMA = {"type": "object", "properties": {"status": {"enum": ["done"]}}, "required": ["status"]}
ROLE = {
    "description": "Writes.",
    "systemPrompt": "Write.",
    "extractPrompt": "What was written.",
    "schema": SCHEMA,
}
WRITER = Role(
    name="writer",
    description="Writes.",
    system_prompt="Write.",
    extract_prompt="What was written.",
    schema=SCHEMA,
)
TALK = Workflow(
    name="talk",
    description="One role.",
    roles=[WRITER],
    moderator={START: "writer", "writer": {"done": END}},
)
ASKER = source(
    "asker",
    """
    step = yield {"role": {"name": "writer"}}
    return {"success": True, "message": step["content"]}
""",
    roles={"writer": ROLE},
    policy={"role": {"tools": ["flow:talk"]}},
    parameters={},
)
DONE = '```json\n{"status": "done"}\n```\n'


def another_at_work() -> AgentSlot:
    """An agent of another store, which this process stands for."""
    return AgentSlot(slots_directory(os.environ), 1, Cancel(), print)


def talk(engine: Engine, tmp_path: Path) -> ThreadId:
    """Start a thread with one agent, in a store that allows one at once."""
    script = tmp_path / "answers.yaml"
    script.write_text("- {role: writer, meta: {status: done}}\n", "utf-8")
    engine.store.config_path.write_text("limits: {agents: 1}\n")
    granted(engine.store, build_workflow(TALK))
    return engine.run("talk", prompt="", options=RunOptions(agents={"": f"scripted:{script}"}))


def is_queued(event: Event) -> bool:
    return event.kind == "progress" and str(event.body.get("text")).startswith(
        "queued: 1 agent works"
    )


def at_work(engine: Engine, thread: ThreadId) -> tuple[object, object]:
    [one] = [one for one in engine.working() if one["threadId"] == thread]
    return one["doing"], one["queued"]


def ps(engine: Engine, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "UNCAGED_WORKFLOW_HOME": str(engine.store.root)}
    return subprocess.run(
        [sys.executable, "-m", "uncaged_cli", "ps", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_an_agent_of_another_store_takes_a_place(engine: Engine, tmp_path: Path) -> None:
    """The limit is the machine's; `ps` shows the queued agent and the reason; a free place goes to
    the queued agent.
    """
    with another_at_work():
        thread = talk(engine, tmp_path)
        wait_for(engine, thread, is_queued)
        assert at_work(engine, thread) == ("role writer, queued behind other agents", 1)
        shown = ps(engine)
        assert "role writer, queued behind other agents" in shown.stdout
        assert (
            "1 agent is queued: 1 agent is running on this machine (all stores), and limits.agents in config.yaml is 1"
            in shown.stderr
        )
        [document] = json.loads(ps(engine, "--json").stdout)
        assert (document["queued"], document["doing"]) == (
            1,
            "role writer, queued behind other agents",
        )
    assert finish(engine, thread)["success"]


def test_a_queued_agent_can_be_killed(engine: Engine, tmp_path: Path) -> None:
    """A queued agent that is killed never began, and the void says so."""
    with another_at_work():
        thread = talk(engine, tmp_path)
        wait_for(engine, thread, is_queued)
        engine.kill(thread)
        assert settle(engine, thread)["status"] == "killed"
        [void] = [record for record in written(engine, thread) if "void" in record]
        assert void["message"] == "killed while scripted waited to answer for 'writer'"


def test_an_agent_that_waits_for_a_flow_lends_its_place(engine: Engine) -> None:
    """Else a model that uses a flow with roles as a tool would wait for itself for ever, where one
    agent works at once.
    """
    with serving([calls(("talk", {})), says(DONE), says("It is done.\n\n", DONE)]) as server:
        agent = f"{{use: openai, baseUrl: '{server.base_url('openai')}', model: tiny}}"
        engine.store.config_path.write_text(
            f"agents: {{mine: {agent}}}\nagent: mine\nlimits: {{agents: 1}}\n"
        )
        granted(engine.store, build_workflow(TALK))
        granted(engine.store, ASKER)
        thread = engine.run("asker", prompt="go", options=RunOptions(environment={}))
        assert finish(engine, thread)["message"] == "It is done."
        assert len(server.asked) == 3
