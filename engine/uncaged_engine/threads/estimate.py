"""Estimate of what a run of a flow costs, from past threads of the same hash: how many there were,
the median and the worst.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from uncaged_bundles.ids import BundleHash

from ..state.observe import ThreadSummary

ENDED = frozenset(("completed", "failed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One quantity over the past threads."""

    median: float
    worst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """n: past threads that ended by themselves. unpriced: how many of them used tokens whose price
    is not known.
    """

    hash: BundleHash
    n: int
    unpriced: int = 0
    cost: Figure | None = None
    tokens: Figure | None = None
    seconds: Figure | None = None
    steps: Figure | None = None


def estimate(bundle: BundleHash, summaries: Iterable[ThreadSummary]) -> Estimate:
    """Sum up the past threads of one hash; forks count with their own part only."""
    past = [one for one in summaries if one.hash == bundle and one.status in ENDED]
    if not past:
        return Estimate(hash=bundle, n=0)
    return Estimate(
        hash=bundle,
        n=len(past),
        unpriced=sum(one.spent.unpriced for one in past),
        cost=_figure(one.spent.cost for one in past),
        tokens=_figure(one.spent.tokens for one in past),
        seconds=_figure(max(0, one.updated_ms - one.started_ms) / 1000 for one in past),
        steps=_figure(one.steps for one in past),
    )


def _figure(values: Iterable[float]) -> Figure:
    known = list(values)
    return Figure(median=float(median(known)), worst=float(max(known)))
