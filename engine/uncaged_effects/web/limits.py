"""How long a request may take and how much of an answer is kept: what the bundle asks for, within what the policy allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from uncaged_engine.services.network import WebProblem

from .exchange import Limits

MAX_BYTES = 5 << 20
MOST_BYTES = 64 << 20
"""However much a policy allows: an answer is held in memory, and written down."""
TOTAL_S = 60.0
LONGEST_S = 3600.0


def limits_of(body: object, policy: Mapping[str, object]) -> Limits:
    """Raises: WebProblem: kind *effect*: timeout_s is no number of seconds."""
    asked_s = body.get("timeout_s") if isinstance(body, Mapping) else None
    if asked_s is not None and (isinstance(asked_s, bool) or not isinstance(asked_s, int | float) or not asked_s > 0):
        raise WebProblem("effect", f"timeout_s must be a number of seconds above 0, not {asked_s!r}")
    allowed_s = cast("float | None", policy.get("timeout_s"))
    total_s = min(float(cast("float", asked_s) or allowed_s or TOTAL_S), allowed_s or LONGEST_S, LONGEST_S)
    return Limits(max_bytes=int(min(cast("float", policy.get("maxBytes", MAX_BYTES)), MOST_BYTES)), total_s=total_s)
