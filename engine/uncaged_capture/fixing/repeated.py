"""Failures that come back: the same flow with the same error at the same place, within a day of a
decision about its fix.
"""

from __future__ import annotations

from uncaged_engine.services.proposals import Proposals

from .failed import FailedThread

__all__ = ["BY", "repeated_failure"]

DAY_MS = 24 * 3600 * 1000
DECIDED = ("accepted", "rejected")
BY = "fixing"
"""The maker that proposals of fixes name."""


def repeated_failure(proposals: Proposals, failed: FailedThread, now_ms: int) -> str | None:
    """Return why nothing is proposed for a failure whose kind a proposal of the last day was for,
    and which came back after a person decided about that; None if this is the first one.
    """
    for one in proposals.all():
        recent = now_ms - one.created_ms < DAY_MS
        if one.by != BY or one.flow != failed.flow or not recent or one.state not in DECIDED:
            continue
        if one.evidence.get("error") == failed.case.sign and failed.id not in one.threads:
            return (
                f"{failed.flow} failed in the same way ({failed.case.sign}) within a day of proposal {one.id}, which was"
                f" {one.state}; a second fix of the same kind needs a person: uncaged-workflow proposal show {one.id}"
            )
    return None
