"""Time and size limits of a web request."""

from __future__ import annotations

from uncaged_bundles.limits import FetchLimits

from .exchange import ExchangeLimits

MAX_BYTES = 5 << 20
MOST_BYTES = 64 << 20
"""Upper bound for every policy: a body is held in memory and journaled."""
TOTAL_S = 60.0
LONGEST_S = 3600.0


def limits_of(requested_s: float | None, allowed: FetchLimits) -> ExchangeLimits:
    """Return the limits of one exchange: the bundle's timeout within the policy's limits."""
    total_s = min(
        requested_s or allowed.timeout_s or TOTAL_S, allowed.timeout_s or LONGEST_S, LONGEST_S
    )
    max_bytes = MAX_BYTES if allowed.max_bytes is None else allowed.max_bytes
    return ExchangeLimits(max_bytes=int(min(max_bytes, MOST_BYTES)), total_s=float(total_s))
