"""A recording on its way to be a flow: its proof run, and the flow that is added."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncaged_browser.recording.summary import summary_of
from uncaged_browser.secrets import name_of_secret
from uncaged_bundles.errors import EngineBug, without_thread

from .captured_flow import wording_document
from .display import json_output
from .display.output import next_run, note, result
from .inputs.consent import asker
from .inputs.recording_answers import send_asker

if TYPE_CHECKING:
    from uncaged_browser.recording.recording import Recording
    from uncaged_browser.session.proving import FlowProof
    from uncaged_bundles.builders.recipes.flows import WebFlow
    from uncaged_capture.other_values import OtherRun, OtherState
    from uncaged_capture.wording import Wording
    from uncaged_engine.api import Added, Engine

    from .capture_words import CaptureExample

_OTHER_STATES: Mapping[str, OtherState] = {
    "proved": "succeeded",
    "unproved": "held",
    "failed": "failed",
}


def write_recording(recording: Recording, file: Path) -> None:
    from uncaged_bundles.storage.files import write_atomically

    write_atomically(file.absolute(), recording.text().encode())
    note(f"wrote {file}")


class KeptRecording:
    """A recording whose flow may not be saved. file: holds it already."""

    def __init__(self, recording: Recording, file: Path | None) -> None:
        self._recording = recording
        self._file = file

    def keep(self) -> Path:
        """Return the file that holds it; it is written once if there is none."""
        if self._file is None:
            number, file = 1, Path(f"{self._recording.name}.recording.json")
            while file.exists():
                number += 1
                file = Path(f"{self._recording.name}-{number}.recording.json")
            write_recording(self._recording, file)
            self._file = file
        return self._file


class RecordedFlow:
    """A recording on its way to be a flow."""

    def __init__(
        self,
        engine: Engine,
        recording: Recording,
        parameters: Mapping[str, str],
        recipe: Mapping[str, object],
        wording: Wording | None = None,
    ) -> None:
        """Args: parameters: recorded values by name. recipe: what is built. wording: of a captured
        one.
        """
        self._engine = engine
        self._recording = recording
        self._parameters = parameters
        self._wording = wording
        self._recipe: dict[str, Any] = dict(recipe)
        self._name = str(recipe["name"])
        self._granted: tuple[str, ...] = ()
        self._other: OtherRun | None = None

    def show(self, *, quiet: bool) -> None:
        """Print the steps, with the parameters in them, and what was left out."""
        write = note if quiet else result
        for number, step in enumerate(self._recipe["steps"], 1):
            write(f"{number:3}  {summary_of(step)}")
        for name, fields in self._recipe["parameters"].items():
            write(f"parameter {name}: {fields['default']}")
        for pattern in self._recipe["grammarPatterns"]:
            write(f"sentence: {pattern}")
        for line in self._recording.left_out:
            note("left out: ", line)

    def prove(self, session: str, *, accept: bool, resend: bool) -> FlowProof:
        """Perform the steps in a fresh context of a session, after a yes to what the flow may use:
        the steps, perhaps a stranger's, load pages and type secrets.

        Raises:
            RefusedError: the answer is no.
        """
        self._granted = self._engine.widened_by(self._name, self._source())
        if self._granted:
            ask = asker(f"flow {self._name!r}", accept=accept, shared=self._engine.address)
            ask(self._granted)
        note("proof run …")
        return self._run(session, self.values, send_asker(self._recipe["steps"], send=resend))

    @property
    def values(self) -> dict[str, object]:
        """The recorded values of the parameters."""
        return {name: one["default"] for name, one in self._recipe["parameters"].items()}

    @property
    def schema(self) -> Mapping[str, object]:
        """The JSON Schema of the parameters."""
        return self._flow().parameters

    def run_example(
        self, session: str, proof: FlowProof, example: CaptureExample | None
    ) -> FlowProof:
        """Perform the steps with other values in another fresh context, and send nothing, unless
        the proof failed; return the proof after that.
        """
        from uncaged_capture.other_values import OtherRun, proof_with, shown_values

        if example is None or proof.state == "failed":
            return proof
        note(f"a further run, with {shown_values(example.values)} …")
        started_ms = self._engine.clock_ms()
        values = {**self.values, **example.values}
        found = self._run(session, values, lambda _step, _reason: False)
        self._other = OtherRun(
            values=example.values,
            state=_OTHER_STATES[found.state],
            step=found.step,
            reason=found.reason,
            seconds=(self._engine.clock_ms() - started_ms) / 1000,
        )
        if found.state == "proved" and example.kept_if is not None and self._wording is not None:
            self._wording = self._wording.with_example(example.kept_if)
            self._recipe["examples"] = [dict(one) for one in self._wording.examples]
        return proof_with(proof, self._other)

    def _run(
        self, session: str, values: Mapping[str, object], may_send: Callable[[int, str], bool]
    ) -> FlowProof:
        from uncaged_browser.problems import BrowserProblem
        from uncaged_browser.session.client import SessionClient, SessionGone
        from uncaged_browser.session.proving import FlowProof, ProofRun
        from uncaged_bundles.errors import EnvironmentLacks
        from uncaged_engine.services.secrets import secret_value

        try:
            with SessionClient.open(self._engine.store, session) as client:
                proof = ProofRun(
                    client,
                    self._flow().policy,
                    secret_of=lambda name: secret_value(name, self._engine.config, os.environ),
                    may_send=may_send,
                )
                return proof.run(self._recipe["steps"], values)
        except (BrowserProblem, EnvironmentLacks, SessionGone) as exc:
            return FlowProof(state="unproved", step=1, reason=without_thread(exc))

    def add(self, proof: FlowProof) -> Added:
        """Add the flow with what was granted before the proof; its description says what was not
        proved.
        """
        if proof.step is not None:
            text = f"{self._recipe['description']} Unproved at step {proof.step}: {proof.reason}."
            self._recipe["description"] = " ".join(text.split())
        return self._engine.add(
            self._name, self._source(), accept=lambda widened: set(widened) <= {*self._granted}
        )

    def report(self, added: Added, proof: FlowProof, *, as_json: bool) -> None:
        """Print what was added and proved."""
        if as_json:
            json_output.document(
                {
                    "flow": added.name,
                    "hash": added.hash,
                    "changed": added.changed,
                    "granted": list(added.widened),
                    "steps": len(self._recipe["steps"]),
                    "parameters": dict(self._parameters),
                    "leftOut": list(self._recording.left_out),
                    **(
                        {}
                        if self._wording is None
                        else {"wording": wording_document(self._wording)}
                    ),
                    "proof": proof.document(),
                    **({} if self._other is None else {"otherValues": self._other.document()}),
                }
            )
            return
        result(f"{added.name}@{added.hash}")
        if proof.step is None:
            result("proved: a second run did all steps")
        else:
            result(f"unproved at step {proof.step}: {proof.reason}")
        if self._other is not None and self._other.state != "failed":
            result(self._other.sentence)
        if proof.refused:
            note("the pages also asked for ", ", ".join(proof.refused), " (--allow-host)")
        values = self._parameters.items()
        next_run(added.name, [name for name, value in values if name_of_secret(value) is None])

    def _source(self) -> bytes:
        from uncaged_bundles.builders.recipes.recipe_flow import build_flow
        from uncaged_engine.effect_kinds import KNOWN

        return build_flow(self._flow(), KNOWN).source

    def _flow(self) -> WebFlow:
        from uncaged_bundles.builders.recipes.flows import WebFlow
        from uncaged_bundles.builders.recipes.recipe import parse_recipe

        flow = parse_recipe(self._recipe)
        if not isinstance(flow, WebFlow):
            raise EngineBug(f"the recipe of a recording is a {type(flow).__name__}")
        return flow
