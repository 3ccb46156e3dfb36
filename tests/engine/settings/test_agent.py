"""Settings of agents."""

from __future__ import annotations

from typing import Any

import pytest
from uncaged_agents.command import CommandAgent
from uncaged_agents.scripted import ScriptedAgent
from uncaged_bundles.errors import UsageError


@pytest.mark.parametrize(
    ("agent", "settings", "words"),
    [
        (
            CommandAgent,
            {"argv": "claude -p"},
            "needs argv: a list of texts such as [my-agent, --fast], not 'claude -p'",
        ),
        (CommandAgent, {}, "needs argv"),
        (CommandAgent, {"argv": []}, "needs argv"),
        (CommandAgent, {"argv": ["a", 1]}, "needs argv"),
        (
            CommandAgent,
            {"argv": ["a"], "timeout": 3},
            "has no setting 'timeout'; did you mean 'timeoutSeconds'?",
        ),
        (
            CommandAgent,
            {"argv": ["a"], "timeoutSeconds": 0},
            "needs timeoutSeconds in seconds above 0, not 0",
        ),
        (
            CommandAgent,
            {"argv": ["a"], "env": {"A": 1}},
            "needs env: a mapping of variables to texts",
        ),
        (CommandAgent, {"argv": ["a"], "zzz": 1}, "known: argv, env, timeoutSeconds, graceSeconds"),
        (ScriptedAgent, {"file": ""}, "needs file: text"),
        (ScriptedAgent, {"path": "x"}, "has no setting 'path'"),
    ],
)
def test_a_wrong_setting_is_named(agent: Any, settings: dict[str, object], words: str) -> None:
    """At the start of a run, before anything is written; the kind of agent is in the message."""
    with pytest.raises(UsageError) as caught:
        agent(settings)
    assert words in str(caught.value)
    assert str(caught.value).startswith("an agent that uses ")
