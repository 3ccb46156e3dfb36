"""How far an agent is held to the policy is known before it starts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from uncaged_agents.holding import not_held
from uncaged_agents.kinds import own_kinds
from uncaged_bundles.rights import ALL_TOOLS, Rights

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
        ("program", {"row": "claude"}, BOTH, "held to the policy's tools by its own options, not to the sandbox"),
        ("program", {"row": "claude"}, BOX, "told of the policy's sandbox, not held to it"),
        ("program", {"row": "claude", "rights": []}, TOOLS, "told of the policy's tools, not held to it"),
        ("program", {"row": "codex"}, TOOLS, "told of the policy's tools, not held to it"),
        ("command", {"argv": ["x"]}, BOTH, "told of the policy's tools and sandbox, not held to it"),
        ("somebody-elses", {}, TOOLS, "told of the policy's tools, not held to it"),
    ],
)
def test_the_start_record_says_how_far_an_agent_is_held(use: str, settings: Mapping[str, object], rights: Rights, told: str | None) -> None:
    """An agent that is not known to be held is told to be not."""
    assert not_held(use, settings, rights) == told


@pytest.mark.parametrize("use", own_kinds())
def test_nothing_is_said_where_there_is_nothing_to_hold_to(use: str) -> None:
    """A policy without such limits leaves the line as it was."""
    assert not_held(use, {}, ALL_TOOLS) is None
