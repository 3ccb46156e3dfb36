"""The third stage of extraction: a configured model, only when the agent could not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from testbed.modelserver import ModelServer, fails, says, serving
from testbed.roles import EffectHarness, role_bundle
from testbed.tool_loops import KEY
from uncaged_agents.choose import choose_agents
from uncaged_agents.role import RoleHandler
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.storage.store import Store
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.settings.config import AgentSettings, Config, SecretSource

pytestmark = pytest.mark.slow

MakeHarness = Callable[..., EffectHarness]


@pytest.fixture
def make_harness(store: Store) -> MakeHarness:
    """A thread whose agent says what a shell script prints, and whose extractor is a model."""

    def make(server: ModelServer, script: str, extractor: str | None = "tiny") -> EffectHarness:
        tiny = {
            "baseUrl": server.base_url("openai"),
            "model": "tiny-1",
            "key": "secret:OPENAI_API_KEY",
        }
        config = Config(
            agents={"shell": AgentSettings(use="command", settings={"argv": ["sh", "-c", script]})},
            agent="shell",
            models={"tiny": AgentSettings(use="openai", settings=tiny)},
            extractor=extractor,
        )
        bundle = role_bundle(policy={"role": {}})
        environment = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": KEY}
        agents = choose_agents(
            config,
            flow="demo",
            roles=bundle.descriptor.roles,
            asked={},
            environment=environment,
            directory=store.root,
        )
        start = {"parameters": {"prompt": "Do it.", "params": {}}, "agents": agents}
        return EffectHarness(
            store=store, bundle=bundle, start=start, environment=environment, config=config
        )

    return make


def perform(harness: EffectHarness) -> Outcome:
    return RoleHandler().perform({"name": "coder"}, harness.context(1))


def test_a_block_that_fits_needs_no_model(make_harness: MakeHarness) -> None:
    """The extractor is not asked at all."""
    with serving([]) as server:
        outcome = perform(make_harness(server, 'printf \'```json\\n{"status": "done"}\\n```\\n\''))
        assert isinstance(outcome, Answer)
        assert server.asked == []


def test_an_agent_that_cannot_is_read_by_the_model(make_harness: MakeHarness) -> None:
    """After its repairs; the step has the agent's words as content and counts what the model used;
    without an extractor it fails.
    """
    with serving([says('{"status": "done"}')]) as server:
        harness = make_harness(server, "echo I am done.")
        outcome = perform(harness)
        assert isinstance(outcome, Answer), outcome
        assert outcome.fields["meta"] == {"status": "done"}
        assert outcome.fields["content"] == "I am done.\n"
        assert outcome.fields["by"] == "shell"
        usage: Any = outcome.fields["usage"]
        assert (usage["calls"], usage["inputTokens"]) == (3, 100)
        [body] = server.asked
        assert "I am done." in body["messages"][1]["content"]
        assert "Say how it went." in body["messages"][1]["content"]
        assert isinstance(perform(make_harness(server, "echo I am done.", extractor=None)), Failure)
        assert len(server.asked) == 1


def test_the_model_does_not_hear_the_agents_secrets(make_harness: MakeHarness) -> None:
    """The extractor is another service; the agent's answer reaches it as it is in the journal."""
    with serving([says('{"status": "done"}')]) as server:
        harness = make_harness(server, "echo My key is $MINE.")
        shell = harness.config.agents["shell"]
        agents = {"shell": replace(shell, settings={**shell.settings, "env": {"MINE": "secret:K"}})}
        harness.config = replace(
            harness.config, agents=agents, secrets={"K": SecretSource(env="KEY_HERE")}
        )
        harness.environment = {**harness.environment, "KEY_HERE": "hunter22-value"}
        assert isinstance(perform(harness), Answer)
        assert "My key is secret:K." in server.asked[0]["messages"][1]["content"]


def test_a_model_that_cannot_either_is_one_of_the_attempts(make_harness: MakeHarness) -> None:
    """Missing data is not filled in: the step fails, and the failure names the agent and the
    extractor.
    """
    with serving(lambda _: says("It does not say.")) as server:
        harness = make_harness(server, "echo hm.")
        outcome = perform(harness)
    assert isinstance(outcome, Failure)
    assert outcome.error["kind"] == "extraction"
    assert "the extractor 'tiny'" in str(outcome.error["attempts"])
    assert [attempt.get("extractor") for attempt in harness.attempts] == [
        None,
        None,
        None,
        "tiny",
        "tiny",
        "tiny",
    ]


def test_an_extractor_that_cannot_be_asked_is_a_lack(make_harness: MakeHarness) -> None:
    """The thread pauses, without the key in what it says."""
    with (
        serving([fails(401, message=f"bad key {KEY}")]) as server,
        pytest.raises(EnvironmentLacks, match="does not accept the key") as caught,
    ):
        perform(make_harness(server, "echo hm."))
    assert KEY not in str(caught.value)
