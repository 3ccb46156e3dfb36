"""Second run of a proof: the flow once more with other values than the recorded ones.

There is no recorded outcome for other values, so an effect that is not harmless is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from uncaged_bundles.clean import shorten
from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass, replace
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.api import Engine
from uncaged_engine.services.secrets import redact
from uncaged_engine.services.trials import Decisions, TrialResult, shown

from .proving import failure_of, last_step, stopped_step
from .values import secrets_in

if TYPE_CHECKING:
    from uncaged_browser.session.proving import FlowProof

    from .proving import TrialProof

__all__ = ["OtherRun", "changed_values", "other_values", "proof_with", "run_with", "shown_values"]

AnyProof = TypeVar("AnyProof", "TrialProof", "FlowProof")
OtherState = Literal["succeeded", "held", "failed"]
_SHOWN_CHARACTERS = 60
_MESSAGE_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRun:
    """Run of a flow with other values.

    values: those that differ from the recorded ones. state: ``held`` at an effect that may not be
    performed without a recorded outcome. step: the last one that was reached, from 1; None if it
    succeeded. reason: why it did not. message: of its result. seconds: of the run.
    """

    values: Mapping[str, object]
    state: OtherState
    step: int | None = None
    reason: str = ""
    message: str = ""
    seconds: float = 0.0

    @property
    def sentence(self) -> str:
        """Return the outcome for a person."""
        values = shown_values(self.values)
        match self.state:
            case "succeeded":
                end = f": {self.message}" if self.message else ""
                return f"with {values} it succeeded ({self.seconds:.1f} s){end}"
            case "held":
                return f"with {values} it was held at step {self.step}: {self.reason}"
            case "failed":
                return f"with {values} it failed at step {self.step}: {self.reason}"

    def document(self) -> dict[str, object]:
        """Return the run as JSON data."""
        return {
            "values": dict(self.values),
            "state": self.state,
            **({} if self.step is None else {"step": self.step}),
            **({"reason": self.reason} if self.reason else {}),
            **({"message": self.message} if self.message else {}),
        }


def other_values(
    recorded: Mapping[str, object], example: Mapping[str, object], secrets: Mapping[str, str]
) -> dict[str, object]:
    """Return the values of an example that differ from the recorded ones, as `changed_values` does.

    Raises:
        UsageError: no value differs.
    """
    changed = changed_values(recorded, example, secrets)
    if not changed:
        raise UsageError(
            "the example has the recorded values; an example needs at least another one"
        )
    return changed


def changed_values(
    recorded: Mapping[str, object], example: Mapping[str, object], secrets: Mapping[str, str]
) -> dict[str, object]:
    """Return the values of an example that differ from the recorded ones, if any.

    Args:
        recorded: values of all parameters by name. secrets: known ones, value to name; those of
            the usual forms are recognised.
    Raises:
        UsageError: one is no value of a parameter, or is a secret.
    """
    for name, value in example.items():
        if name not in recorded:
            known = ", ".join(sorted(recorded)) or "none"
            raise UsageError(f"no parameter {name!r}; the parameters are: {known}")
        if str(recorded[name]).startswith("secret:"):
            raise UsageError(f"the parameter {name!r} is a secret, which an example cannot change")
        text = str(value)
        if next(secrets_in(text), None) is not None or redact(text, secrets) != text:
            raise UsageError(
                f"the example's value of {name!r} looks like a secret; an example is shown and kept"
            )
    return {name: value for name, value in example.items() if value != recorded[name]}


def run_with(
    engine: Engine,
    bundle: Bundle,
    recorded: Mapping[str, object],
    changed: Mapping[str, object],
    *,
    directory: Path | None = None,
    decisions: Decisions | None = None,
) -> OtherRun:
    """Try a bundle with other values.

    Args:
        changed: those that differ from the recorded ones. directory, decisions: as for
            `Engine.trial`.
    Raises:
        UsageError: the flow does not take these values.
    """
    started_ms = engine.clock_ms()
    found = engine.trial(
        bundle,
        params={**recorded, **changed},
        directory=directory,
        decisions=decisions,
    )
    seconds = (engine.clock_ms() - started_ms) / 1000
    held = found.unproved
    if found.ending in ("held", "unable"):
        reason = found.message
        if held is not None and not held.effect.harmless:
            reason = (
                f"{shown(held.effect)} has no recorded outcome for these values; it was not done"
            )
        step = stopped_step(found)
        return OtherRun(values=changed, state="held", step=step, reason=reason, seconds=seconds)
    if not found.success:
        step, reason = last_step(found), failure_of(found)
        return OtherRun(values=changed, state="failed", step=step, reason=reason, seconds=seconds)
    return OtherRun(values=changed, state="succeeded", message=_message(found), seconds=seconds)


def proof_with(proof: AnyProof, other: OtherRun) -> AnyProof:
    """Return a proof after a second run. A failed one leaves it unproved, at the first step that
    was not proved.
    """
    if other.state != "failed":
        return proof
    reason = "; ".join(filter(None, (proof.reason, other.sentence)))
    step = other.step if proof.step is None else proof.step
    return replace(proof, state="unproved", step=step, reason=reason)


def shown_values(values: Mapping[str, object]) -> str:
    """Return values in one line: ``genre=jazz, count=2``."""
    return ", ".join(
        f"{name}={shorten(str(value), _SHOWN_CHARACTERS)}" for name, value in values.items()
    )


def _message(found: TrialResult) -> str:
    result: Mapping[str, Any] = found.result if isinstance(found.result, Mapping) else {}
    return shorten(str(result.get("message") or ""), _MESSAGE_CHARACTERS)
