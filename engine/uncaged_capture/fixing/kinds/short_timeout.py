"""Time limit that is shorter than what a step took before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import ceil

from ..candidates import FixCandidate
from ..case import FixCase, RecordedStep
from ..machine import Machine

__all__ = ["candidates"]

MARGIN = 4
LEAST_S = 10.0
MOST_S = 3600.0
_NO_LONGER = "and no fix sets a longer limit"
STATED = re.compile(r"\btimeout_s\s*=\s*(?P<limit>\d+(?:\.\d+)?)")
SLEEP = re.compile(r"\bsleep\s+(?P<seconds>\d+(?:\.\d+)?)(?![\w.])")


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with a longer limit."""
    del machine
    if case.failed is None or case.failed.word != "timeout":
        return
    step = case.failed.step
    if step.kind == "script":
        yield from _of_script(case)
    elif step.kind == "role":
        yield from _of_role(case)
    else:
        yield from _of_request(case, step)


def _of_script(case: FixCase) -> Iterator[FixCandidate | str]:
    """A script without a limit that was long enough before may never end."""
    limit = case.limits("script").get("timeout_s")
    if not isinstance(limit, int | float):
        yield "the script took longer than the default limit; nothing shows how long it needs"
        return
    taken_s = max([_taken_s(one) for one in case.before if one.kind == "script"], default=0.0)
    stated = sum(float(found["seconds"]) for found in SLEEP.finditer(case.text))
    needed = max(taken_s, stated)
    if needed < limit / 2:
        yield f"the script did not end in {limit:g} s; nothing shows that it needs more and ends"
        return
    longer = _longer(limit, needed)
    if longer is None:
        yield f"the script did not end in {limit:g} s, {_NO_LONGER}"
        return
    shown = f"took {taken_s:.1f} s before" if taken_s >= stated else f"waits {stated:g} s"
    why = f"the script {shown}, and its limit is {limit:g} s; it gets {longer:g} s"
    yield FixCandidate(
        kind="short-timeout", recipe=case.with_limits("script", timeout_s=longer), why=why
    )


def _of_role(case: FixCase) -> Iterator[FixCandidate | str]:
    limit = case.limits("role").get("timeout_s")
    if not isinstance(limit, int | float):
        yield "the role's agent did not answer in time, and the flow states no limit for it"
        return
    longer = _longer(limit)
    if longer is None:
        yield f"the role's agent did not answer in {limit:g} s, {_NO_LONGER}"
        return
    why = f"the role's agent did not answer in {limit:g} s; it gets {longer:g} s"
    recipe = case.with_limits("role", timeout_s=longer)
    yield FixCandidate(kind="short-timeout", recipe=recipe, why=why)


def _of_request(case: FixCase, step: RecordedStep) -> Iterator[FixCandidate | str]:
    found = list(STATED.finditer(case.text))
    body = step.body if isinstance(step.body, Mapping) else {}
    if len(found) != 1 or body.get("timeout_s") != float(found[0]["limit"]):
        yield f"the {step.kind} had no answer in time, and the script does not state one limit for it"
        return
    [place] = found
    longer = _longer(float(place["limit"]))
    if longer is None:
        yield f"the {step.kind} had no answer in {place['limit']} s, {_NO_LONGER}"
        return
    text = f"{case.text[: place.start('limit')]}{longer:g}{case.text[place.end('limit') :]}"
    why = f"the {step.kind} had no answer in {place['limit']} s; it gets {longer:g} s"
    yield FixCandidate(kind="short-timeout", recipe=case.with_text(text), why=why)


def _longer(limit: float, needed: float = 0.0) -> float | None:
    """Return a longer limit, of MOST_S at most; None if there is none. All in seconds."""
    longer = float(min(MOST_S, max(LEAST_S, ceil(MARGIN * max(needed, limit)))))
    return longer if longer > limit else None


def _taken_s(step: RecordedStep) -> float:
    duration = step.outcome.get("durationMs", 0) if isinstance(step.outcome, Mapping) else 0
    return float(duration) / 1000 if isinstance(duration, int | float) else 0.0
