"""Usage as numbers that add up, limits of spending, prices."""

from __future__ import annotations

from ..costs.prices import priced
from ..journal.usage import NOTHING, SPENDING_LIMITS, Spent, counted_usage, usage_of

__all__ = ["NOTHING", "SPENDING_LIMITS", "Spent", "counted_usage", "priced", "usage_of"]
