"""Options that several verbs take."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_cli.arguments import parse_agents


def test_agents_are_bound_by_role_and_by_default() -> None:
    """The default stands under the empty role."""
    assert parse_agents(["repair", "coder=claude", " reviewer = x "]) == {"": "repair", "coder": "claude", "reviewer": "x"}


@pytest.mark.parametrize("values", [[""], ["=x"], ["coder="], ["a", "b"], ["coder=a", "coder=b"]])
def test_a_binding_that_says_nothing_or_twice_is_refused(values: list[str]) -> None:
    """An option that would be ignored is an error."""
    with pytest.raises(UsageError, match="--agent"):
        parse_agents(values)
