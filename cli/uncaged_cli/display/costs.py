"""Texts for tokens and money. A model without a known price is shown as `price unknown`, not as
zero.
"""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING

from .durations import spell

if TYPE_CHECKING:
    from uncaged_engine.journal.usage import Spent
    from uncaged_engine.threads.estimate import Estimate, Figure


def money(cost: float, *, unpriced: bool) -> str:
    """Format a sum: ``$0.12``, ``$0.12 and an unknown price``, or ``price unknown``."""
    if unpriced:
        return f"{dollars(cost)} and an unknown price" if cost else "price unknown"
    return dollars(cost) if cost else ""


def dollars(cost: float) -> str:
    """Format dollars: ``$1,234.50``, ``$0.50``; below one dollar with up to four significant
    digits, ``$0.00125``.
    """
    if cost >= 1:
        return f"${cost:,.2f}"
    places = max(2, 3 - floor(log10(cost))) if cost > 0 else 2
    whole, _, part = f"{cost:.{places}f}".partition(".")
    return f"${whole}.{part.rstrip('0'):0<2}"


def spell_spent(spent: Spent) -> str:
    """Format usage: ``12,300 tokens (8,000 cached), $0.12``; empty if nothing was counted."""
    parts = []
    if spent.tokens:
        cached = f" ({spent.cached_tokens:,} cached)" if spent.cached_tokens else ""
        parts.append(f"{spent.tokens:,} tokens{cached}")
    price = money(spent.cost, unpriced=spent.unpriced)
    if price:
        parts.append(price)
    return ", ".join(parts)


def estimate_lines(found: Estimate, name: str) -> list[str]:
    """Format the estimate of a flow, line by line."""
    if (
        not found.n
        or found.seconds is None
        or found.steps is None
        or found.tokens is None
        or found.cost is None
    ):
        return [
            f"{name}@{found.hash}: no thread of this version has ended yet, so there is no estimate"
        ]
    lines = [
        f"{name}@{found.hash}: {found.n} past thread{'' if found.n == 1 else 's'} (median, worst)"
    ]
    lines.append(
        f"  time    {spell(round(found.seconds.median * 1000))}, {spell(round(found.seconds.worst * 1000))}"
    )
    lines.append(f"  steps   {_pair(found.steps)}")
    if found.tokens.worst:
        lines.append(f"  tokens  {_pair(found.tokens)}")
        unknown = (
            f"; {found.unpriced} of them used a model without a known price"
            if found.unpriced
            else ""
        )
        lines.append(
            f"  money   {dollars(found.cost.median)}, {dollars(found.cost.worst)}{unknown}"
        )
    return lines


def _pair(figure: Figure) -> str:
    return f"{figure.median:,.0f}, {figure.worst:,.0f}"
