"""Workflows made of the path that a thread took."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from testbed.forked_commands import ForkedCommands
from testbed.modelserver import says, serving
from testbed.recordings import Commands
from testbed.steering import finish
from uncaged_bundles.builders.definition import build_definition
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

DEFINITION = """
from uncaged_bundles.authoring import END, Role, View, Workflow


def role(name, *words):
    schema = {"type": "object", "properties": {"status": {"enum": list(words)}}, "required": ["status"]}
    return Role(
        name=name, description=f'The "{name}".', system_prompt="Work.\\n", extract_prompt="Say.\\n", schema=schema
    )


ROLES = (role("writer", "written", "stuck"), role("checker", "good", "bad"), role("poet", "rhymed"))


def moderator(ctx: View) -> str:
    if not ctx.steps:
        return "writer"
    last = ctx.steps[-1]
    if last.role == "writer":
        return "checker" if len(ctx.steps) < 4 else "poet"
    return "writer" if last.meta.status == "bad" else END


workflow = Workflow(name="letters", description="Writes letters.", roles=ROLES, moderator=moderator)
"""
FIRST = [("writer", "written"), ("checker", "bad"), ("writer", "written"), ("checker", "good")]


@pytest.fixture
def engine(full_store: Store) -> Engine:
    return Engine(full_store)


@pytest.fixture
def commands(engine: Engine, tmp_path: Path, forked: ForkedCommands) -> Commands:
    file = tmp_path / "letters_flow.py"
    file.write_text(DEFINITION)
    engine.add("letters", build_definition(file), accept=lambda _: True)
    return Commands(engine.store, tmp_path, os.environ, forked)


def run(engine: Engine, flow: str, path: Sequence[tuple[str, str]]) -> tuple[ThreadId, Any]:
    """Run a workflow whose roles answer with these statuses."""
    turns = [
        says(f"I am the {role}.\n\n", f'```json\n{{"status": "{status}"}}\n```\n')
        for role, status in path
    ]
    with serving(turns) as server:
        agent = {"use": "openai", "baseUrl": server.base_url("openai"), "model": "tiny"}
        config = {"agents": {"mine": agent}, "agent": "mine"}
        engine.store.config_path.write_text(json.dumps(config))
        options = RunOptions(environment={})
        thread = engine.run(flow, prompt="write to Ada", options=options)
        return thread, finish(engine, thread)


def asked(engine: Engine, thread: ThreadId) -> list[str]:
    return [record["role"] for record in engine.thread(thread).records if "role" in record]


def test_the_path_of_a_thread_is_a_workflow(engine: Engine, commands: Commands) -> None:
    """The table repeats the path, a status that did not occur ends it without success, and `build`
    makes the same bundle of the definition that was written.
    """
    thread, _ = run(engine, "letters", FIRST)
    done = commands.run(
        "capture", thread, "--as", "workflow", "--name", "short-letters", "--accept", "--json"
    )
    assert done.code == 0, done.err
    found = done.document
    assert found["steps"] == 4
    assert found["proof"]["state"] == "proved"
    assert found["leftOut"] == ["role poet: it was not asked"]
    graph = engine.bundle("short-letters").descriptor.raw["graph"]
    assert graph == {
        "__start__": "writer",
        "writer": {"written": "checker", "stuck": "__end__"},
        "checker": {"good": "__end__", "bad": "writer"},
    }
    built = commands.run("build", "short_letters.py", "--json")
    assert built.document["hash"] == found["hash"]
    again, result = run(engine, "short-letters", FIRST)
    assert asked(engine, again) == [role for role, _ in FIRST]
    assert result["success"] is True
    other, result = run(engine, "short-letters", [("writer", "stuck")])
    assert asked(engine, other) == ["writer"]
    assert result["success"] is False


def test_a_path_that_no_table_repeats_is_refused(engine: Engine, commands: Commands) -> None:
    """Where one status led to two roles, the refusal names both steps; without a form, capture
    names the one for roles.
    """
    path = [*FIRST[:2], *FIRST[:2], ("writer", "written"), ("poet", "rhymed")]
    thread, _ = run(engine, "letters", path)
    done = commands.run("capture", thread, "--as", "workflow", "--accept")
    assert done.code == 1
    assert "at step 1 writer with status 'written' led to checker, at step 5 to poet" in done.err
    done = commands.run("capture", thread)
    assert done.code == 5
    assert f"`uncaged-workflow capture {thread} --as workflow`" in done.err
