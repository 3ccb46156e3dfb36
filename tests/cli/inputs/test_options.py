"""Options of several verbs."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_cli.inputs.options import parse_agents


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
