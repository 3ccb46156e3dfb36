"""A candidate on its way to be a flow: what is shown of it, its proof, and what is added."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError

from .display import json_output
from .display.output import next_run, note, result
from .inputs.consent import asker
from .inputs.recording_answers import can_ask

if TYPE_CHECKING:
    from uncaged_capture.candidate import FlowCandidate, MayAct
    from uncaged_capture.other_values import OtherRun
    from uncaged_capture.proving import TrialProof
    from uncaged_capture.wording import Wording
    from uncaged_engine.api import Added, Engine
    from uncaged_engine.services.trials import TrialEffect

    from .capture_words import CaptureExample


class CapturedFlow:
    """A candidate on its way to be a flow."""

    def __init__(self, engine: Engine, candidate: FlowCandidate) -> None:
        self._engine = engine
        self._candidate = candidate
        self._granted: tuple[str, ...] = ()
        self._other: OtherRun | None = None

    def show(self, *, quiet: bool) -> None:
        """Print the steps, the parameters, what was left out, and what to know about it."""
        write = note if quiet else result
        for number, line in enumerate(self._candidate.steps, 1):
            write(f"{number:3}  {line}")
        for one in self._candidate.parameters:
            write(f"parameter {one.name}: {f'secret:{one.secret}' if one.secret else one.value}")
        for pattern in self._candidate.wording.patterns:
            write(f"sentence: {pattern}")
        for line in self._candidate.left_out:
            note("left out: ", line)
        for line in self._candidate.notes:
            note(line)

    def prove(self, *, accept: bool, resend: bool) -> TrialProof:
        """Prove the flow after a yes to what it may do.

        Raises:
            RefusedError: the answer is no.
        """
        name, source = self._candidate.wording.name, self._candidate.source()
        self._granted = self._engine.widened_by(name, source)
        ask = asker(f"flow {name!r}", accept=accept, shared=self._engine.address)
        ask(self._granted or ("what it was granted before",))
        note("proof run …")
        return self._candidate.prove(self._engine, _may_act(resend=resend))

    def run_example(self, proof: TrialProof, example: CaptureExample | None) -> TrialProof:
        """Run the flow with other values, unless its proof failed; return the proof after that.

        Raises:
            UsageError: the flow does not take the values that the person named.
        """
        from uncaged_capture.other_values import proof_with, shown_values

        if example is None or proof.state not in ("proved", "unproved"):
            return proof
        note(f"a further run, with {shown_values(example.values)} …")
        try:
            self._other = self._candidate.run_with(self._engine, example.values)
        except (UsageError, NotFoundError) as exc:
            if isinstance(exc, UsageError) and example.kept_if is None:
                raise
            note("there was no further run: ", str(exc))
            return proof
        if self._other.state == "succeeded" and example.kept_if is not None:
            wording = self._candidate.wording.with_example(example.kept_if)
            self._candidate = self._candidate.reworded(wording)
        return proof_with(proof, self._other)

    def require_result(self, proof: TrialProof, *, unproved: bool) -> None:
        """Ask whether to save a flow whose proof failed or gave another result.

        Raises:
            RefusedError: it is not saved.
        """
        if proof.state not in ("failed", "different"):
            return
        for line in proof.differences:
            note(line)
        if proof.reason:
            note(proof.reason)
        if unproved or (
            can_ask() and click.confirm("Save the flow all the same?", default=False, err=True)
        ):
            return
        what = "failed" if proof.state == "failed" else "gave another result"
        raise RefusedError(
            f"the proof run {what}; the flow was not saved. To save it as it is: --unproved"
        )

    def add(self, proof: TrialProof) -> Added:
        """Add the flow with what was granted; its description says what was not proved."""
        if self._candidate.definition:
            self._keep_definition()
        return self._engine.add(
            self._candidate.wording.name,
            self._candidate.source(proof.remark),
            accept=lambda widened: set(widened) <= {*self._granted},
        )

    def _keep_definition(self) -> None:
        """Write the definition beside those that a person writes; no file is replaced."""
        from uncaged_bundles.storage.files import write_atomically

        stem = self._candidate.wording.name.replace("-", "_")
        number, file = 1, Path(f"{stem}.py")
        while file.exists():
            number += 1
            file = Path(f"{stem}_{number}.py")
        write_atomically(file.absolute(), self._candidate.definition.encode())
        note(
            f"wrote {file}: change it, then uncaged-workflow add {self._candidate.wording.name} {file}"
        )

    def report(self, added: Added, proof: TrialProof, *, as_json: bool) -> None:
        """Print what was added and proved."""
        candidate = self._candidate
        if as_json:
            json_output.document(
                {
                    "flow": added.name,
                    "hash": added.hash,
                    "changed": added.changed,
                    "granted": list(added.widened),
                    "steps": len(candidate.steps),
                    "parameters": {
                        one.name: f"secret:{one.secret}" if one.secret else one.value
                        for one in candidate.parameters
                    },
                    "leftOut": list(candidate.left_out),
                    "notes": list(candidate.notes),
                    "wording": wording_document(candidate.wording),
                    "proof": proof.document(),
                    **({} if self._other is None else {"otherValues": self._other.document()}),
                }
            )
            return
        result(f"{added.name}@{added.hash}")
        result(
            f"proved: {proof.reason or f'a second run gave the recorded results ({proof.seconds:.1f} s)'}"
            if proof.state == "proved"
            else proof.remark.removesuffix(".")
        )
        if self._other is not None and self._other.state != "failed":
            result(self._other.sentence)
        next_run(added.name, [one.name for one in candidate.parameters if not one.secret])


def wording_document(wording: Wording) -> dict[str, object]:
    """Return the wording of a flow as JSON data, without its name."""
    return {
        "description": wording.description,
        "patterns": list(wording.patterns),
        "examples": [dict(one) for one in wording.examples],
    }


def _may_act(*, resend: bool) -> MayAct:
    """Return a function that asks whether the proof may perform an effect that is not harmless.
    Without a terminal the answer is *resend*.
    """

    def may_act(effect: TrialEffect) -> bool:
        if resend or not can_ask():
            return resend
        from uncaged_engine.services.trials import shown

        note(f"step {effect.step} would do this again: {shown(effect)}")
        return click.confirm("Do it again?", default=False, err=True)

    return may_act
