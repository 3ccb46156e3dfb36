"""Kinds of agents: what each says of itself before an agent of it is asked."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from uncaged_agents.choice import Choice
from uncaged_agents.kinds import kind_of, own_kinds
from uncaged_bundles.rights import ALL_TOOLS, Rights
from uncaged_engine.door.agents import AgentKind

TOOLS = Rights(tools=frozenset({"read"}))
BOX = Rights(sandbox=True)
BOTH = Rights(tools=frozenset({"read"}), sandbox=True)


@pytest.mark.parametrize(
    ("use", "settings", "rights", "told"),
    [
        ("anthropic", {}, BOTH, None),
        ("openai", {}, BOTH, None),
        ("repair", {}, BOTH, None),
        ("acp", {"row": "gemini"}, TOOLS, "held to the policy's tools in what it asks of us"),
        ("acp", {"argv": ["x"]}, BOX, "held to the policy's sandbox in what it asks of us"),
        ("program", {"row": "claude"}, TOOLS, "held to the policy's tools by its own options"),
        (
            "program",
            {"row": "claude"},
            BOTH,
            "held to the policy's tools by its own options, not to the sandbox",
        ),
        ("program", {"row": "claude"}, BOX, "told of the policy's sandbox, not held to it"),
        (
            "program",
            {"row": "claude", "rights": []},
            TOOLS,
            "told of the policy's tools, not held to it",
        ),
        ("program", {"row": "codex"}, TOOLS, "told of the policy's tools, not held to it"),
        (
            "command",
            {"argv": ["x"]},
            BOTH,
            "told of the policy's tools and sandbox, not held to it",
        ),
        ("scripted", {"file": "x"}, TOOLS, "told of the policy's tools, not held to it"),
        ("person", {}, TOOLS, "told of the policy's tools, not held to it"),
    ],
)
def test_the_start_record_says_how_far_an_agent_is_held(
    use: str, settings: Mapping[str, object], rights: Rights, told: str | None
) -> None:
    """The ``limits`` of an agent's record are the words of its kind; an agent that is held to
    everything has none.
    """
    record = Choice(name=use, use=use, settings=settings, reason="asked for").recorded(rights)
    assert record.get("limits") == told
    assert ("limits" in record) == (told is not None)


@pytest.mark.parametrize("use", own_kinds())
def test_a_policy_without_limits_leaves_the_record_as_it_was(use: str) -> None:
    """A record has no ``limits`` where the rights are not narrowed."""
    assert "limits" not in Choice(name=use, use=use, settings={}, reason="asked for").recorded(
        ALL_TOOLS
    )


def test_a_kind_without_a_class_has_safe_defaults() -> None:
    """An agent whose factory says nothing of its kind is not held, plays all roles, and has no
    one-word form.
    """
    assert AgentKind.holds({}, TOOLS) == "told of the policy's tools, not held to it"
    assert (AgentKind.plays, AgentKind.parse("x"), AgentKind.describe({"file": "x"})) == (
        None,
        None,
        "",
    )


@pytest.mark.parametrize(
    ("use", "settings", "words"),
    [
        ("anthropic", {"model": "m"}, "m"),
        (
            "openai",
            {"model": "m", "baseUrl": "http://127.0.0.1:9/v1"},
            "m at http://127.0.0.1:9/v1",
        ),
        ("acp", {"row": "gemini"}, "Gemini CLI"),
        ("acp", {"argv": ["mine", "--acp"]}, "mine"),
        ("program", {"row": "claude"}, "Claude Code"),
        ("program", {"row": 7}, ""),
        ("command", {"argv": "not a list"}, ""),
        ("scripted", {"file": "s.yaml"}, "s.yaml"),
    ],
)
def test_an_agent_of_the_config_is_described_unchecked(
    use: str, settings: Mapping[str, object], words: str
) -> None:
    """Settings that are wrong have no description, and no error: `agents` lists them all the
    same.
    """
    assert kind_of(use).describe(settings) == words
