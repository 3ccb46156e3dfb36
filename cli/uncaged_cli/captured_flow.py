"""A candidate on its way to be a flow: what is shown of it, its proof, and what is added."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import RefusedError

from .display import json_output
from .display.output import next_run, note, result
from .inputs.consent import asker
from .inputs.recording_answers import can_ask

if TYPE_CHECKING:
    from uncaged_capture.candidate import FlowCandidate, MayAct
    from uncaged_capture.proving import TrialProof
    from uncaged_engine.api import Added, Engine
    from uncaged_engine.services.trials import TrialEffect


class CapturedFlow:
    """A candidate on its way to be a flow."""

    def __init__(self, engine: Engine, candidate: FlowCandidate) -> None:
        self._engine = engine
        self._candidate = candidate
        self._granted: tuple[str, ...] = ()

    def show(self, *, quiet: bool) -> None:
        """Print the steps, the parameters, what was left out, and what to know about it."""
        write = note if quiet else result
        for number, line in enumerate(self._candidate.steps, 1):
            write(f"{number:3}  {line}")
        for one in self._candidate.parameters:
            write(f"parameter {one.name}: {f'secret:{one.secret}' if one.secret else one.value}")
        for line in self._candidate.left_out:
            note("left out: ", line)
        for line in self._candidate.notes:
            note(line)

    def prove(self, *, accept: bool, resend: bool) -> TrialProof:
        """Prove the flow after a yes to what it may do.

        Raises:
            RefusedError: the answer is no.
        """
        name, source = self._candidate.name, self._candidate.source()
        self._granted = self._engine.widened_by(name, source)
        asker(f"flow {name!r}", accept=accept)(self._granted or ("what it was granted before",))
        note("proof run …")
        return self._candidate.prove(self._engine, _may_act(resend=resend))

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
            self._candidate.name,
            self._candidate.source(proof.remark),
            accept=lambda widened: set(widened) <= {*self._granted},
        )

    def _keep_definition(self) -> None:
        """Write the definition beside those that a person writes; no file is replaced."""
        from uncaged_bundles.storage.files import write_atomically

        stem = self._candidate.name.replace("-", "_")
        number, file = 1, Path(f"{stem}.py")
        while file.exists():
            number += 1
            file = Path(f"{stem}_{number}.py")
        write_atomically(file.absolute(), self._candidate.definition.encode())
        note(f"wrote {file}: change it, then uncaged-workflow add {self._candidate.name} {file}")

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
                    "proof": proof.document(),
                }
            )
            return
        result(f"{added.name}@{added.hash}")
        result(
            f"proved: {proof.reason or f'a second run gave the recorded results ({proof.seconds:.1f} s)'}"
            if proof.state == "proved"
            else proof.remark.removesuffix(".")
        )
        next_run(added.name, [one.name for one in candidate.parameters if not one.secret])


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
