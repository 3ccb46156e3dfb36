"""Usage as numbers that add up, limits of spending, prices."""

from __future__ import annotations

from ..costs.accounting import NOTHING, SPENDING_LIMITS, Spent, usage_of
from ..costs.prices import priced

__all__ = ["NOTHING", "SPENDING_LIMITS", "Spent", "priced", "usage_of"]
