"""A usage that names its model gets a cost if the model's price is known, and none if it is not."""

from __future__ import annotations

import pytest
from uncaged_engine.costs.prices import price_of, priced, shipped
from uncaged_engine.journal.usage import NOTHING
from uncaged_models.settings import MODELS


def test_cached_tokens_have_a_price_of_their_own() -> None:
    """Cached and stored tokens are part of the input, and are not paid twice."""
    usage = {
        "model": "m",
        "inputTokens": 1_000_000,
        "cachedTokens": 400_000,
        "storedTokens": 100_000,
        "outputTokens": 10_000,
    }
    own = {"m": {"input": 10.0, "output": 100.0, "cached": 1.0, "stored": 12.0}}
    assert priced(usage, own)["cost"] == pytest.approx(5.0 + 0.4 + 1.2 + 1.0)


def test_an_unknown_price_is_unknown_and_never_nought() -> None:
    """No cost is made up, and the sum says that something is missing from it."""
    usage = priced({"model": "nobody-knows", "inputTokens": 10, "outputTokens": 1}, {})
    assert "cost" not in usage
    assert NOTHING.plus(usage).unpriced


def test_a_cost_that_the_agent_reports_stays() -> None:
    """Who was billed knows better than a table."""
    assert priced({"model": "gpt-5", "inputTokens": 10, "cost": 7.0}, {})["cost"] == 7.0


@pytest.mark.parametrize(
    "name", ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5-latest"]
)
def test_a_dated_name_has_its_models_price(name: str) -> None:
    """Vendors put dates behind a model's name."""
    assert price_of(name, {}) == shipped()["claude-sonnet-4-5"]


def test_the_persons_prices_go_first() -> None:
    """Prices in config.yaml override the shipped table."""
    own = {"gpt-5": {"input": 1.0, "output": 2.0}}
    assert price_of("gpt-5-2025-08-07", own) == own["gpt-5"]


@pytest.mark.parametrize("model", MODELS.values())
def test_the_models_that_are_used_unasked_have_a_price(model: str) -> None:
    """A limit of money holds for a user who only sets a key."""
    assert price_of(model, {}) is not None


@pytest.mark.parametrize(("turns", "dollars"), [(1, 5.0), (2, 5.0), (3, 1.0)])
def test_long_requests_may_cost_more(turns: int, dollars: float) -> None:
    """A sum of several turns counts as so many requests of the same size; the price of long ones
    begins above the size.
    """
    own = {
        "m": {
            "input": 1.0,
            "output": 1.0,
            "above": {"tokens": 400_000, "input": 5.0, "output": 5.0},
        }
    }
    assert priced({"model": "m", "inputTokens": 1_000_000, "turns": turns}, own)["cost"] == dollars


def test_a_request_of_just_that_size_is_not_long() -> None:
    """Vendors say: above."""
    own = {
        "m": {
            "input": 1.0,
            "output": 1.0,
            "above": {"tokens": 1_000_000, "input": 5.0, "output": 5.0},
        }
    }
    assert priced({"model": "m", "inputTokens": 1_000_000}, own)["cost"] == 1.0
