"""Bodies of the flow effect."""

from __future__ import annotations

import pytest
from uncaged_effects.flow import FlowBody
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.outcomes import Failure


@pytest.mark.parametrize("rounds", ["many", True, -1, 1.5])
def test_a_limit_of_rounds_that_is_no_number_is_refused(rounds: object) -> None:
    """A child is not started with a limit that its worker could not read."""
    refused = read_body("flow", FlowBody, {"name": "count", "maxRounds": rounds})
    assert isinstance(refused, Failure)
    assert "flow.maxRounds" in str(refused.error["message"])


@pytest.mark.parametrize("rounds", [None, 0, 7])
def test_a_limit_of_rounds_reaches_the_child(rounds: object) -> None:
    """A limit may be None, which is the same as no own limit, or a whole number from 0 on."""
    asked = read_body("flow", FlowBody, {"name": "count", "maxRounds": rounds})
    assert isinstance(asked, FlowBody)
    assert asked.max_rounds == rounds
