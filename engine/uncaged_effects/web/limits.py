"""How long a request may take and how much of an answer is kept: what the bundle asks for, within
what the policy allows.
"""

from __future__ import annotations

from uncaged_bundles.limits import FetchLimits

from .exchange import ExchangeLimits

MAX_BYTES = 5 << 20
MOST_BYTES = 64 << 20
"""However much a policy allows: an answer is held in memory, and written down."""
TOTAL_S = 60.0
LONGEST_S = 3600.0


def limits_of(asked_s: float | None, allowed: FetchLimits) -> ExchangeLimits:
    """Return the limits of one exchange: what the bundle asks for, within what the policy
    allows.
    """
    total_s = min(
        asked_s or allowed.timeout_s or TOTAL_S, allowed.timeout_s or LONGEST_S, LONGEST_S
    )
    max_bytes = MAX_BYTES if allowed.max_bytes is None else allowed.max_bytes
    return ExchangeLimits(max_bytes=int(min(max_bytes, MOST_BYTES)), total_s=float(total_s))
