"""Bundles with roles and an empty policy: each step is yielded by the bundle itself, as in a
self-contained bundle of another engine.
"""

from __future__ import annotations

import pytest
from testbed.bundles import granted, source
from testbed.steering import finish, settle
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Cut, Engine, RunOptions

pytestmark = pytest.mark.slow

ROLE = {
    "description": "A role.",
    "systemPrompt": "You work.",
    "extractPrompt": "Say how it went.",
    "schema": {"type": "object"},
}
SELF_CONTAINED = source(
    "seed-style",
    """
    steps = list(input["steps"])
    phases = ["parse", "print"]
    if not steps:
        steps.append((yield {"output": {"role": "planner", "content": input["prompt"], "meta": {"phases": phases}}}))
    for phase in phases[len(steps) - 1:]:
        steps.append((yield {"output": {"role": "coder", "content": phase, "meta": {"phase": phase}}}))
""",
    head='START = "__start__"\nEND = "__end__"\n',
    kind="workflow",
    parameters={},
    policy={},
    roles={"planner": ROLE, "coder": ROLE},
)
"""Planner and coder are declared for readers; `run` yields their outputs and returns nothing."""
ASKING = SELF_CONTAINED.replace(b"'policy': {}", b"'policy': {'role': {}}").replace(
    b"phases[len(steps) - 1:]:\n",
    b"phases[len(steps) - 1:]:\n        yield {'role': {'name': 'coder'}}\n",
)
NOTHING_CONFIGURED = {"PATH": "/nonexistent"}


def options(**agents: str) -> RunOptions:
    return RunOptions(agents=agents, environment=NOTHING_CONFIGURED)


def run(engine: Engine, **agents: str) -> ThreadId:
    granted(engine.store, SELF_CONTAINED)
    return engine.run("seed-style", prompt="Fix bug #3", params={}, options=options(**agents))


def test_a_seed_style_bundle_runs_on_a_machine_with_nothing_configured(engine: Engine) -> None:
    """A bundle with roles and policy {} whose steps are its own needs no agent, and its start
    record names none.
    """
    thread = run(engine)
    finish(engine, thread)
    view = engine.thread(thread)
    assert view.start["agents"] == {}
    steps = [
        (record["role"], record["content"], record["by"])
        for record in view.records
        if "role" in record
    ]
    assert steps == [
        ("planner", "Fix bug #3", "bundle"),
        ("coder", "parse", "bundle"),
        ("coder", "print", "bundle"),
    ]
    assert engine.verify(thread).ok


def test_an_agent_for_a_role_that_the_bundle_plays_is_refused(engine: Engine) -> None:
    """An agent that would never be asked is an error before a thread starts, and says whose steps
    these are.
    """
    with pytest.raises(
        RefusedError, match=r"'seed-style' asks no agent for 'coder': its policy has no \"role\""
    ):
        run(engine, coder="person")
    assert list(engine.threads()) == []


def test_a_fork_to_a_version_that_asks_finds_an_agent(engine: Engine) -> None:
    """A fork looks for the agents that its own version asks, if its source's start record names
    none.
    """
    thread = run(engine)
    finish(engine, thread)
    asking = granted(engine.store, ASKING.replace(b"seed-style", b"asking-style"))
    engine.store.config_path.write_text("agent: person\n")
    fork = Engine(engine.store).fork(thread, cut=Cut(at=1), on=asking.hash, options=options())
    assert settle(engine, fork)["status"] == "waiting"
    assert engine.thread(fork).start["agents"]["default"]["name"] == "person"
