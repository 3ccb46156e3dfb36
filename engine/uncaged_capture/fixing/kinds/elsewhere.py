"""Failures whose cause is not in the flow: another flow that it called, a page, a service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..candidates import FixCandidate
from ..case import FixCase
from ..machine import Machine

__all__ = ["candidates"]

SERVICE = ("dns", "connect", "tls", "status 500", "status 502", "status 503", "status 504")
RIGHTS = ("status 401", "status 403")


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield sentences alone."""
    del machine
    failed = case.failed
    if failed is None:
        return
    step, outcome = failed.step, failed.step.outcome
    if step.kind == "flow" and isinstance(step.body, Mapping):
        child = outcome.get("threadId") if isinstance(outcome, Mapping) else None
        command = f"; see: uncaged-workflow fix {child}" if child else ""
        yield f"the flow {step.body.get('name')!r} failed, which this one calls{command}"
    elif failed.word in SERVICE:
        yield f"the service did not answer as it should ({failed.word}: {failed.message[:200]}); no change of the flow helps"
    elif failed.word in RIGHTS:
        yield f"the service refused the request ({failed.word}): a key may be missing or expired"
