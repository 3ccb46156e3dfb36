"""Prices of models, and the cost of a usage. A usage whose model has no known price gets no
cost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("prices.json")
_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")

Price = Mapping[str, Any]
"""US dollars per million tokens: input, output, and perhaps cached (read from a cache) and stored
(written to one).

above: the same for requests with more input than its ``tokens``, where long requests cost more.
"""


def priced(usage: Mapping[str, object], own: Mapping[str, Price]) -> dict[str, object]:
    """Add its ``cost`` to a usage.

    Args:
        usage: a cost that it has already is kept. own: the config's prices, which override the
            shipped ones.
    """
    model = usage.get("model")
    if "cost" in usage or not isinstance(model, str):
        return dict(usage)
    price = price_of(model, own)
    return dict(usage) if price is None else {**usage, "cost": round(cost(usage, price), 6)}


def price_of(model: str, own: Mapping[str, Price]) -> Price | None:
    """Look up the price of a model by its name, with or without a date at its end."""
    bare = _DATED.sub("", model)
    return own.get(model) or own.get(bare) or shipped().get(model) or shipped().get(bare)


def cost(usage: Mapping[str, object], price: Price) -> float:
    """Compute US dollars. Cached and stored tokens are part of the input tokens, and have prices of
    their own where the table lists them.

    Where long requests cost more, a usage of several turns counts as so many requests of equal
    size, because a sum has lost their sizes.
    """
    above = price.get("above")
    is_long = (
        above is not None
        and _count(usage, "inputTokens") / max(1.0, _count(usage, "turns")) > above["tokens"]
    )
    rates: Price = above if above is not None and is_long else price
    cached, stored = _count(usage, "cachedTokens"), _count(usage, "storedTokens")
    fresh = max(0.0, _count(usage, "inputTokens") - cached - stored)
    parts = (
        fresh * rates["input"],
        cached * rates.get("cached", rates["input"]),
        stored * rates.get("stored", rates["input"]),
        _count(usage, "outputTokens") * rates["output"],
    )
    return float(sum(parts)) / 1_000_000


@cache
def shipped() -> Mapping[str, Price]:
    """Load the shipped table."""
    table: Mapping[str, Price] = json.loads(TABLE.read_text("utf-8"))["models"]
    return table


def _count(usage: Mapping[str, object], name: str) -> float:
    value = usage.get(name)
    return value if isinstance(value, int | float) else 0.0
