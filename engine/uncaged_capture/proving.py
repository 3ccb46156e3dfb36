"""Proof of a captured flow: a trial with the recorded values, whose result must be the recorded
one.

A trial does nothing again that leaves the machine (`Engine.trial`): such an effect gets its
recorded outcome, if there is one, and the flow counts as unproved from that step on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from uncaged_bundles.records import dataclass
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.services.trials import Decisions, TrialResult, shown

__all__ = [
    "Compare",
    "ProofState",
    "TrialProof",
    "differences_of",
    "failure_of",
    "last_step",
    "prove",
    "stopped_step",
]

ProofState = Literal["proved", "unproved", "different", "failed"]
Compare = Callable[[TrialResult], Sequence[str]]
"""Returns how the result of a trial differs from the recorded one, one sentence each."""

_MOST_DIFFERENCES = 10
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProof:
    """Outcome of a proof.

    state: ``different`` if it ended with success and another result. step: the first one that was
    not proved, from 1. reason: why. differences: one sentence each. seconds: of the trial.
    """

    state: ProofState
    step: int | None = None
    reason: str = ""
    differences: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def remark(self) -> str:
        """Return what a person who meets the flow should know; "" if it is proved."""
        match self.state:
            case "proved":
                return ""
            case "unproved":
                return f"Unproved at step {self.step}: {self.reason}."
            case "different":
                return f"Unproved: {'; '.join(self.differences)}."
            case "failed":
                return f"Unproved: {self.reason}."

    def document(self) -> dict[str, object]:
        """Return the proof as JSON data."""
        return {
            "state": self.state,
            **({} if self.step is None else {"step": self.step}),
            **({"reason": self.reason} if self.reason else {}),
            **({"differences": list(self.differences)} if self.differences else {}),
        }


def prove(
    engine: Engine,
    bundle: Bundle,
    *,
    compare: Compare,
    prompt: str = "",
    params: Mapping[str, object] | None = None,
    directory: Path | None = None,
    options: RunOptions | None = None,
    decisions: Decisions | None = None,
    trust_record: bool = False,
) -> TrialProof:
    """Try a bundle with the recorded values.

    Args:
        directory, options, decisions: as for `Engine.trial`. trust_record: a step that gets its
            recorded outcome counts as proved.
    """
    started_ms = engine.clock_ms()
    found = engine.trial(
        bundle,
        prompt=prompt,
        params=params,
        directory=directory,
        options=options,
        decisions=decisions,
    )
    seconds = (engine.clock_ms() - started_ms) / 1000
    held = found.unproved
    if found.ending in ("held", "unable"):
        step = stopped_step(found)
        return TrialProof(state="unproved", step=step, reason=found.message, seconds=seconds)
    if not found.success:
        return TrialProof(state="failed", reason=failure_of(found), seconds=seconds)
    if differences := tuple(compare(found)[:_MOST_DIFFERENCES]):
        return TrialProof(state="different", differences=differences, seconds=seconds)
    if held is not None and not trust_record:
        reason = f"{shown(held.effect)} was not done again; its recorded outcome was used"
        return TrialProof(state="unproved", step=held.effect.step, reason=reason, seconds=seconds)
    return TrialProof(state="proved", seconds=seconds)


def differences_of(recorded: object, found: object, where: str) -> list[str]:
    """Return how JSON data differ, one sentence for each place.

    Args:
        where: name of the data, such as ``result of step 2``.
    """
    if isinstance(recorded, Mapping) and isinstance(found, Mapping):
        lines = []
        for key in {**recorded, **found}:
            place = f"{where}.{key}"
            if key not in found:
                lines.append(f"{place} was {_short(recorded[key])}, and is missing now")
            elif key not in recorded:
                lines.append(f"{place} was missing, and is {_short(found[key])} now")
            else:
                lines += differences_of(recorded[key], found[key], place)
        return lines
    if isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        pairs = enumerate(zip(recorded, found, strict=True))
        return [
            line
            for at, (one, other) in pairs
            for line in differences_of(one, other, f"{where}[{at}]")
        ]
    if type(recorded) is type(found) and recorded == found:
        return []
    return [f"{where} was {_short(recorded)}, and is {_short(found)} now"]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def stopped_step(found: TrialResult) -> int:
    """Return the step at which a trial was held, or the last one that it reached, from 1."""
    return last_step(found) if found.unproved is None else found.unproved.effect.step


def last_step(found: TrialResult) -> int:
    """Return the last step that a trial reached, from 1."""
    seqs = [int(record["seq"]) for record in found.records if "seq" in record]
    return max(seqs, default=1)


def failure_of(found: TrialResult) -> str:
    """Return why a trial had no success."""
    if found.ending != "completed":
        return f"the proof run ended as {found.ending}: {found.message}"
    result: Mapping[str, Any] = found.result if isinstance(found.result, Mapping) else {}
    return f"the proof run had no success: {result.get('message') or result.get('error') or 'no message'}"
