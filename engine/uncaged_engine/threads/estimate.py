"""Estimate of the cost of a run, from past threads of the same bundle: their number, median and
maximum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from uncaged_bundles.ids import BundleHash

from ..state.observe import ThreadSummary

ENDED = frozenset(("completed", "failed"))
MOST_THREADS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One quantity over the past threads."""

    median: float
    worst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Figures of past threads. n: threads that completed or failed. unpriced: those of them with
    tokens of unknown price.
    """

    hash: BundleHash
    n: int
    unpriced: int = 0
    cost: Figure | None = None
    tokens: Figure | None = None
    seconds: Figure | None = None
    steps: Figure | None = None


def estimate(bundle: BundleHash, summaries: Iterable[ThreadSummary]) -> Estimate:
    """Summarise the past threads of one bundle; of a fork, its own steps only."""
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
