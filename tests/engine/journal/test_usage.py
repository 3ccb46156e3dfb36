"""Usage of agents: its sum, and the sentence about a limit that was reached."""

from __future__ import annotations

import pytest
from uncaged_engine.journal.usage import NOTHING, Spent, exceeded


@pytest.mark.parametrize(
    ("limits", "seconds", "message"),
    [
        ({"maxTokens": 1.0}, 0.0, "the limit of 1 token is reached"),
        ({"maxTokens": 3.0}, 0.0, "the limit of 3 tokens is reached"),
        ({"maxCost": 0.25}, 0.0, "the limit of $0.25 is reached"),
        ({"maxSeconds": 1.0}, 1.5, "the limit of 1 second is reached"),
        ({"maxSeconds": 1_234_567.0}, 2e6, "the limit of 1,234,567 seconds is reached"),
    ],
)
def test_a_limit_is_told_as_a_person_would_say_it(
    limits: dict[str, float], seconds: float, message: str
) -> None:
    """The number 1 has a singular, money has its sign, and large numbers are not written as powers
    of ten.
    """
    found = exceeded(limits, Spent(input_tokens=3, cost=0.5), seconds)
    assert found is not None
    assert found["message"] == message


def test_a_limit_that_is_not_reached_is_none() -> None:
    """Nor is one that was not set."""
    assert exceeded({"maxTokens": 4.0}, Spent(input_tokens=3, cost=9.0), 9.0) is None


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"inputTokens": 3, "cost": 0}, 0.0),
        ({"inputTokens": 3}, None),
        ({"turns": 1}, None),
        ({"inputTokens": 3, "cost": 0.5}, 0.5),
    ],
    ids=["free", "unpriced", "no tokens", "priced"],
)
def test_tokens_that_are_known_to_be_free_cost_nought(
    usage: dict[str, object], cost: float | None
) -> None:
    """Nothing else says of itself that it cost nought."""
    assert NOTHING.plus(usage).document().get("cost") == cost
