"""Targets of health checks: the agents that could be asked on this machine, each once."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.health import Proving
from testbed.modelserver import says, serving
from uncaged_agents.health.targets import find_missing, targets
from uncaged_engine.settings.config import AgentSettings, Config, FlowSettings, SecretSource

SHELL = AgentSettings(use="command", settings={"argv": ["sh"]})


@pytest.fixture
def proving(tmp_path: Path) -> Proving:
    return Proving.make(tmp_path)


def names(proving: Proving, config: Config) -> list[tuple[str, str]]:
    return [(one.name, one.where) for one in targets(proving.context(config), proving.root)]


def test_everybody_who_is_defined_or_named_is_tried(proving: Proving) -> None:
    """The place to fix is named; a name in several places counts once."""
    config = Config(
        agents={"mine": SHELL},
        agent="mine",
        roles={"reviewer": "person", "coder": "repair"},
        flows={"talk": FlowSettings(agent="person", roles={"writer": "command:cat"})},
        models={"quick": AgentSettings(use="openai", settings={"model": "m"})},
    )
    assert names(proving, config) == [
        ("mine", "agents.mine in config.yaml"),
        ("person", "roles.reviewer in config.yaml"),
        ("repair", "roles.coder in config.yaml"),
        ("command:cat", "flows.talk.roles.writer in config.yaml"),
        ("quick", "models.quick in config.yaml"),
    ]


def test_a_program_on_path_is_tried_after_a_yes_alone(proving: Proving) -> None:
    """Five fake programs are on PATH; a program that was removed is not checked."""
    assert [name for name, _where in names(proving, Config(agent="repair"))] == ["repair"]
    config = Config(agent="repair", consent=("codex", "not claude", "kimi"))
    assert names(proving, config) == [
        ("repair", "agent in config.yaml"),
        ("codex", "consent in config.yaml"),
    ]


def test_what_is_lacking_is_seen_without_asking(proving: Proving) -> None:
    """A missing key, program (on the PATH that its agent sets) or file is reported; an agent that
    has all of them is not, and no process is started.
    """
    proving.program("ours", ":")
    (proving.root / "bin").rename(proving.root / "away")
    agents = {
        "keyless": AgentSettings(use="anthropic", settings={"key": "secret:NONE"}),
        "keyed": AgentSettings(use="openai", settings={"key": "secret:K"}),
        "gone": AgentSettings(use="acp", settings={"row": "kimi"}),
        "here": AgentSettings(use="program", settings={"row": "codex"}),
        "own": AgentSettings(use="acp", settings={"argv": ["no-such-agent"]}),
        "elsewhere": AgentSettings(
            use="acp", settings={"argv": ["ours"], "env": {"PATH": str(proving.root / "away")}}
        ),
        "file": AgentSettings(use="scripted", settings={"file": "/nowhere.yaml"}),
        "shell": SHELL,
    }
    secrets = {"K": SecretSource(env="KEY_HERE"), "NONE": SecretSource(env="NOT_SET")}
    config = Config(
        agents=agents, secrets=secrets, agent="shell", models={"quick": agents["keyless"]}
    )
    found = {
        one.name: finding.text
        for one, finding in find_missing(proving.context(config), proving.root)
    }
    assert sorted(found) == ["file", "gone", "keyless", "own", "quick"]
    assert found["keyless"] == "secret:NONE comes from the variable NOT_SET, which is not set"
    assert found["gone"].startswith("Kimi Code is not installed")
    assert not (proving.root / "calls").exists()


def test_the_default_is_checked_if_no_agent_is_chosen(proving: Proving) -> None:
    """The default is that of a run without a choice: here the program with the person's consent."""
    assert [name for name, _where in names(proving, Config(consent=("codex",)))] == ["codex"]


def test_a_name_without_an_agent_is_a_problem_of_its_own(proving: Proving) -> None:
    """The others are tried all the same."""
    found = proving.all(Config(agents={"mine": SHELL}, agent="mine", roles={"coder": "mien"}))
    assert [(one.name, finding.level) for one, finding in found] == [
        ("mine", "ok"),
        ("mien", "problem"),
    ]
    assert found[1][1].text.startswith("there is no agent 'mien' (known: mine")
    assert found[1][1].remedy == "fix roles.coder in config.yaml"


@pytest.mark.slow
def test_one_under_two_names_is_asked_once(proving: Proving) -> None:
    """Also where one of them plays roles and the other answers the llm effect; another model is
    another.
    """
    with serving(lambda _seen: says("ready")) as server:
        model = {"baseUrl": server.base_url("openai"), "model": "tiny"}
        config = Config(
            agents={"one": AgentSettings(use="openai", settings={**model, "maxTurns": 9})},
            agent="one",
            models={
                "two": AgentSettings(use="openai", settings={**model, "maxTokens": 5}),
                "three": AgentSettings(use="openai", settings={**model, "model": "other"}),
            },
        )
        found = {one.name: finding for one, finding in proving.all(config)}
        assert [asked["model"] for asked in server.asked] == ["tiny", "other"]
        assert found["two"].text == f"the same as one: tiny at {server.base_url('openai')} answered"
        assert (found["two"].level, found["two"].asked, found["three"].asked) == ("ok", False, True)
