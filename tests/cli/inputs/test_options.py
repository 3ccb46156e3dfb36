"""Options of several verbs."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_cli.inputs.options import parse_agent_settings, parse_agents


def test_agents_are_bound_by_role_and_by_default() -> None:
    """The default agent is under the empty role."""
    assert parse_agents(["repair", "coder=claude", " reviewer = x "]) == {
        "": "repair",
        "coder": "claude",
        "reviewer": "x",
    }


def test_an_agent_with_settings_is_no_role() -> None:
    """An equals sign inside a command or a path binds no role."""
    assert parse_agents(["command:tool --x=y", "coder=scripted:a=b.yaml"]) == {
        "": "command:tool --x=y",
        "coder": "scripted:a=b.yaml",
    }


@pytest.mark.parametrize("values", [[""], ["=x"], ["coder="], ["a", "b"], ["coder=a", "coder=b"]])
def test_a_binding_that_says_nothing_or_twice_is_refused(values: list[str]) -> None:
    """An option that would be ignored is an error."""
    with pytest.raises(UsageError, match="--agent"):
        parse_agents(values)


def test_agent_options_are_settings_by_role() -> None:
    """A value is JSON, else text; a key without a role is for the agent of all roles."""
    options = [
        "budgetSeconds=60",
        "coder.testCommand=pytest -k a=b",
        'reviewer.arguments=["-q"]',
        "coder.big=NaN",
    ]
    assert parse_agent_settings(options) == {
        "": {"budgetSeconds": 60},
        "coder": {"testCommand": "pytest -k a=b", "big": "NaN"},
        "reviewer": {"arguments": ["-q"]},
    }


@pytest.mark.parametrize(
    "values", [["budgetSeconds"], ["=3"], [".a=3"], ["coder.=3"], ["a.b.c=1"], ["a=1", "a=2"]]
)
def test_an_agent_option_without_a_key_or_given_twice_is_refused(values: list[str]) -> None:
    """The message names the option."""
    with pytest.raises(UsageError, match="--agent-option"):
        parse_agent_settings(values)
