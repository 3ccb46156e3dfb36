"""Choice of the agent for each role, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from testbed.repositories import write
from uncaged_agents.choose import choose_agents, default_agent
from uncaged_bundles.errors import EnvironmentLacks, NotFoundError, UsageError
from uncaged_engine.settings.config import AgentSettings, Config, FlowSettings
from uncaged_engine.settings.keys import put

AGENTS = {
    name: AgentSettings(use="command", settings={"argv": [name]})
    for name in ("a", "b", "c", "d", "e", "f")
}


def bound(
    config: Config, *roles: str, asked: dict[str, str] | None = None, **more: Any
) -> tuple[str, dict[str, str]]:
    """The name of the default agent ("" if the record names none), and of the others by role."""
    usual: dict[str, Any] = {"flow": "fix", "environment": {"PATH": ""}, "directory": Path("/here")}
    said = cast(
        "dict[str, Any]",
        choose_agents(
            config, roles=roles or ("coder", "reviewer"), asked=asked or {}, **(usual | more)
        ),
    )
    return said["default"]["name"] if "default" in said else "", {
        role: choice["name"] for role, choice in said["roles"].items()
    }


def test_the_special_goes_before_the_general_and_words_before_files() -> None:
    """Asked for the role, asked for all, the flow's role, the flow, the role, the default: each
    step shows when those above are gone.
    """
    full = Config(
        agents=AGENTS,
        agent="e",
        roles={"coder": "d"},
        flows={"fix": FlowSettings(agent="f", roles={"coder": "c"})},
    )
    assert bound(full, asked={"coder": "a", "": "b"}) == ("b", {"coder": "a"})
    assert bound(full, asked={"": "b"}) == ("b", {})
    assert bound(full) == ("f", {"coder": "c"})
    assert bound(
        Config(
            agents=AGENTS, agent="e", roles={"coder": "d"}, flows={"fix": FlowSettings(agent="f")}
        )
    ) == ("f", {})
    assert bound(Config(agents=AGENTS, agent="e", roles={"coder": "d"})) == ("e", {"coder": "d"})
    assert bound(full, flow="other") == ("e", {"coder": "d"})


def test_the_record_says_which_and_why_and_keeps_secrets_by_name() -> None:
    """The start record has the name, the kind, the settings with ``secret:NAME`` unresolved, and
    the reason.
    """
    config = Config(
        agents={
            "mine": AgentSettings(use="command", settings={"argv": ["x"], "env": {"K": "secret:K"}})
        },
        agent="mine",
    )
    said = choose_agents(
        config, flow="fix", roles=["coder"], asked={}, environment={}, directory=Path("/here")
    )
    assert said == {
        "default": {
            "name": "mine",
            "use": "command",
            "settings": {"argv": ["x"], "env": {"K": "secret:K"}},
            "reason": "config.yaml: agent",
        },
        "roles": {},
    }


def test_without_a_configured_agent_the_built_in_repair_answers(tmp_path: Path) -> None:
    """A program on PATH is named in the reason, but never used unasked."""
    plain = default_agent(Config(), {"PATH": str(tmp_path)}, tmp_path)
    assert (plain.name, plain.reason) == (
        "repair",
        "no agent is configured, so the built-in repair answers",
    )
    write(tmp_path, {"claude": "#!/bin/sh\n"})
    (tmp_path / "claude").chmod(0o755)
    found = default_agent(Config(), {"PATH": str(tmp_path)}, tmp_path)
    assert found.name == "repair"
    assert (
        "'claude' is on PATH: to use it, run with --agent claude, or name it in config.yaml"
        in found.reason
    )
    refused = Config(consent=("not claude",))
    assert default_agent(refused, {"PATH": str(tmp_path)}, tmp_path).reason == plain.reason


def test_a_role_without_an_agent_is_an_error_before_a_thread_starts() -> None:
    """The built-in repair answers for a role that it does not play only if it was asked for by
    name.
    """
    with pytest.raises(
        EnvironmentLacks,
        match=r"no agent .* answer for 'poet' in 'fix'; .* plays only planner.*--agent",
    ) as caught:
        bound(Config(), "coder", "poet")
    assert caught.value.exit_code == 4
    assert bound(Config(), "coder", "reviewer") == ("repair", {})
    assert bound(Config(), "poet", asked={"": "repair"}) == ("repair", {})
    assert bound(Config(agents=AGENTS), "coder", "poet", asked={"poet": "a"}) == (
        "repair",
        {"poet": "a"},
    )


def test_a_key_comes_before_a_program_and_a_program_before_the_repair(
    tmp_path: Path,
) -> None:
    """A key was put there to be used; a program on PATH needs a yes."""
    write(tmp_path, {"claude": "#!/bin/sh\n"})
    (tmp_path / "claude").chmod(0o755)
    agreed = Config(consent=("claude",))
    keys = {"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "y"}
    for config, variables, expected in (
        (agreed, keys, "anthropic"),
        (agreed, {"OPENAI_API_KEY": "y"}, "openai"),
        (agreed, {}, "claude"),
        (Config(), {}, "repair"),
    ):
        environment = {"PATH": str(tmp_path), **variables}
        chosen = default_agent(config, environment, tmp_path)
        assert chosen.name == expected


def test_a_key_in_the_store_is_as_good_as_a_variable(tmp_path: Path) -> None:
    """A key that was put into the store is meant to be used; a variable goes first, a key of
    another name means nothing.
    """
    put(tmp_path, "ANTHROPIC_API_KEY", "x")
    put(tmp_path, "WORK", "x")

    def chosen(config: Config, **variables: str) -> tuple[str, str]:
        found = default_agent(config, {"PATH": "", **variables}, tmp_path)
        return found.name, found.reason

    config = Config(keys=tmp_path)
    assert chosen(config) == ("anthropic", "ANTHROPIC_API_KEY is kept in the store")
    assert chosen(config, OPENAI_API_KEY="y") == ("openai", "OPENAI_API_KEY is set")
    (tmp_path / "ANTHROPIC_API_KEY").unlink()
    assert chosen(config)[0] == "repair"


@pytest.mark.parametrize(
    ("word", "use", "settings"),
    [
        ("scripted:demo.yaml", "scripted", {"file": "/here/demo.yaml"}),
        ("scripted:/abs/demo.yaml", "scripted", {"file": "/abs/demo.yaml"}),
        (
            "command:./agent.sh -q 'two words'",
            "command",
            {"argv": ["/here/agent.sh", "-q", "two words"]},
        ),
        ("command:claude -p", "command", {"argv": ["claude", "-p"]}),
        ("repair", "repair", {}),
        ("a", "command", {"argv": ["a"]}),
    ],
)
def test_an_agent_can_be_given_in_one_word(
    word: str, use: str, settings: dict[str, object]
) -> None:
    """Paths start at the caller's directory, since the worker runs elsewhere."""
    bound = choose_agents(
        Config(agents=AGENTS),
        flow="fix",
        roles=["coder"],
        asked={"": word},
        environment={},
        directory=Path("/here"),
    )
    expected = {"use": use, "settings": settings, "reason": "asked for"}
    assert bound["default"] == {"name": word.partition(":")[0], **expected}


def test_paths_in_config_start_at_the_config(tmp_path: Path) -> None:
    """Wherever the person is when they run the flow."""
    config = Config(
        path=tmp_path / "config.yaml",
        agents={"s": AgentSettings(use="scripted", settings={"file": "s.yaml"})},
        agent="s",
    )
    choice = default_agent(config, {}, Path("/elsewhere"))
    assert choice.settings == {"file": str(tmp_path / "s.yaml")}


def test_slips_are_found_before_a_thread_starts() -> None:
    """An unknown agent or role names the nearest; wrong settings and broken quotes are the person's
    words.
    """
    with pytest.raises(NotFoundError, match="there is no agent 'scriptd' \\(known: scripted"):
        bound(Config(), asked={"": "scriptd"})
    with pytest.raises(
        NotFoundError, match="the flow 'fix' has no role 'codr' \\(its roles: coder"
    ):
        bound(Config(agents=AGENTS), asked={"": "a", "codr": "a"})
    with pytest.raises(UsageError, match="needs file: text"):
        bound(Config(), asked={"": "scripted"})
    with pytest.raises(UsageError, match="No closing quotation"):
        bound(Config(), asked={"": "command:'x"})


def test_a_start_record_names_no_agent_that_is_never_asked() -> None:
    """The default is neither checked nor recorded if every role has an agent of its own, and
    nothing is recorded without roles.
    """
    config = Config(agents={**AGENTS, "broken": AgentSettings(use="command")}, agent="broken")
    assert bound(config, "coder", asked={"coder": "a"}) == ("", {"coder": "a"})
    assert bound(Config(agents=AGENTS), "poet", asked={"poet": "a"}) == ("", {"poet": "a"})
    assert (
        choose_agents(
            Config(),
            flow="fix",
            roles=(),
            asked={"": "repair"},
            environment={},
            directory=Path("/here"),
        )
        == {}
    )
    with pytest.raises(UsageError, match="needs file: text"):
        choose_agents(
            Config(),
            flow="fix",
            roles=(),
            asked={"": "scripted"},
            environment={},
            directory=Path("/here"),
        )


def test_options_of_a_thread_go_before_the_settings_of_the_config() -> None:
    """The options of a role go to that role's agent alone; the record keeps them apart, since the
    config's settings are read again when the thread continues.
    """
    config = Config(
        agents={
            "mine": AgentSettings(use="repair", settings={"testSeconds": 3, "suiteSeconds": 9})
        },
        agent="mine",
    )
    said = cast(
        "dict[str, Any]",
        choose_agents(
            config,
            flow="fix",
            roles=["coder", "reviewer"],
            asked={},
            environment={},
            directory=Path("/here"),
            options={"": {"suiteSeconds": 60}, "coder": {"budgetSeconds": 5}},
        ),
    )
    assert said["default"]["settings"] == {"testSeconds": 3, "suiteSeconds": 60}
    assert said["default"]["options"] == {"suiteSeconds": 60}
    assert list(said["roles"]) == ["coder"]
    coder = said["roles"]["coder"]
    assert coder["settings"] == {"testSeconds": 3, "suiteSeconds": 60, "budgetSeconds": 5}
    assert coder["options"] == {"suiteSeconds": 60, "budgetSeconds": 5}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"": {"budget": 1}}, "no setting 'budget'; did you mean 'budgetSeconds'. known: budgetS"),
        ({"coder": {"zzz": 1}}, "no setting 'zzz'; known: budgetSeconds, maxCandidates"),
        ({"": {"suiteSeconds": "long"}}, "needs suiteSeconds in seconds above 0"),
    ],
)
def test_a_wrong_option_is_refused_before_the_thread(
    options: dict[str, dict[str, object]], words: str
) -> None:
    """The message has the keys of the agent's kind."""
    with pytest.raises(UsageError, match=words):
        bound(Config(agents=AGENTS, agent="repair"), options=options)


def test_an_option_for_an_unknown_role_is_refused() -> None:
    """The roles of the flow are named."""
    with pytest.raises(NotFoundError, match="no role 'codr'"):
        bound(Config(agents=AGENTS, agent="repair"), options={"codr": {"budgetSeconds": 1}})
