"""Candidate of a captured script flow: its bundle, and its proof in a fresh workspace."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import Any

from uncaged_bundles.builders.recipes.flows import ScriptFlow
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_bundles.errors import EngineBug, NotFoundError, RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass, replace
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.api import Engine, ThreadView
from uncaged_engine.services.registry import KNOWN, handler_for
from uncaged_engine.services.threads import StepTrace
from uncaged_engine.services.trials import Decisions, TrialEffect, TrialResult

from ..calls import Command, FileEdit, FileWrite, calls_of, texts_in
from ..candidate import MayAct
from ..other_values import OtherRun, run_with
from ..proving import TrialProof, prove
from ..traces import answer_of, only_step
from ..values import Parameter
from ..wording import Wording, worded
from ..workspaces import FreshWorkspace, files_of
from .script import Expected, ScriptCapture, capture_script

__all__ = ["ScriptCandidate", "has_script_calls", "script_candidate", "worktree_in"]

_COMPLAINTS = "[standard error]\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCandidate:
    """A script flow that was made of a role step. seq: of that step."""

    wording: Wording
    view: ThreadView
    seq: int
    capture: ScriptCapture
    environment: Mapping[str, str]

    @property
    def steps(self) -> Sequence[str]:
        return self.capture.captured.steps

    @property
    def left_out(self) -> Sequence[str]:
        return [
            f"call {one.call.number} ({one.call.tool}): {one.reason}"
            for one in self.capture.captured.dropped
        ]

    @property
    def notes(self) -> Sequence[str]:
        return self.capture.captured.remarks

    @property
    def parameters(self) -> Sequence[Parameter]:
        return self.capture.captured.parameters

    @property
    def definition(self) -> str:
        return ""

    def reworded(self, wording: Wording) -> ScriptCandidate:
        return replace(self, wording=wording)

    def source(self, remark: str = "") -> bytes:
        """Return the bundle. remark: a sentence at the end of its description."""
        captured = self.capture.captured
        flow = parse_recipe(worded(captured.recipe, self.wording, remark))
        if not isinstance(flow, ScriptFlow):
            raise EngineBug(f"the recipe of a script is a {type(flow).__name__}")
        if captured.secrets:
            secrets = {name: list(programs) for name, programs in captured.secrets.items()}
            flow = dataclasses.replace(flow, policy={**flow.policy, "secrets": secrets})
        return build_flow(flow, KNOWN).source

    def prove(self, engine: Engine, may_act: MayAct) -> TrialProof:
        """Run the script with the recorded values in a fresh workspace with the files that the
        agent found; what it prints and the files that it leaves must be the recorded ones.

        A script that only reads from hosts may do so again; one that may send something is run
        only if *may_act* says so.
        """
        capture = self.capture
        bundle = read_bundle(self.source(), KNOWN)

        def allow(effect: TrialEffect) -> bool:
            return self._only_reads or may_act(effect)

        try:
            with self._workspace(engine) as workspace:

                def compare(found: TrialResult) -> Sequence[str]:
                    return [*printed_differences(capture.printed, found), *workspace.differences()]

                proof = prove(
                    engine,
                    bundle,
                    compare=compare,
                    params=capture.captured.values,
                    directory=workspace.directory,
                    decisions=Decisions(allow=allow),
                )
        except NotFoundError as exc:
            return TrialProof(state="unproved", step=1, reason=str(exc))
        if proof.state == "unproved" and capture.sends is not None:
            return replace(proof, step=capture.step_of(capture.sends))
        if proof.state == "different" and capture.unsteady:
            reason = (
                f"its result depends on {' and '.join(capture.unsteady)}: {proof.differences[0]}"
            )
            return replace(proof, state="unproved", step=1, reason=reason)
        return proof

    def run_with(self, engine: Engine, changed: Mapping[str, object]) -> OtherRun:
        """Run the script with other values in another fresh workspace. One that reads from hosts
        may do so, unless another path is outside of the workspace.
        """
        paths = [
            str(changed[one.name])
            for one in self.parameters
            if one.type == "path" and one.name in changed
        ]
        with self._workspace(engine) as workspace:
            may_read = self._only_reads and all(map(workspace.holds, paths))
            return run_with(
                engine,
                read_bundle(self.source(), KNOWN),
                self.capture.captured.values,
                changed,
                directory=workspace.directory,
                decisions=Decisions(allow=lambda _effect: may_read),
            )

    @property
    def _only_reads(self) -> bool:
        """Whether the script neither sends to hosts nor writes outside of the workspace."""
        return self.capture.sends is None and not self.capture.writes_outside

    def _workspace(self, engine: Engine) -> AbstractContextManager[FreshWorkspace]:
        """Return a fresh workspace with the files that the agent found.

        Raises:
            NotFoundError: they are gone.
        """
        start, records, thread = self.view.start, self.view.records, self.view.summary.thread_id
        role = handler_for("role")
        return FreshWorkspace.fresh(
            files_of(start, records, self.seq),
            self.environment,
            role.repository(engine.store, ThreadId(thread), start, records, self.environment),
        )


def script_candidate(
    engine: Engine,
    view: ThreadView,
    traces: Sequence[StepTrace],
    *,
    name: str,
    step: int | None,
    named: Mapping[str, str] | None,
    environment: Mapping[str, str],
) -> ScriptCandidate:
    """Return the script flow of the commands and file changes of a thread's agent.

    Args:
        step: the role step; None if only one ran commands or changed files. named: values of
            parameters by name.
    Raises:
        NotFoundError: no step, or not this one, did. UsageError: several did, and none is named.
        RefusedError: no script can be made of it.
    """
    thread = view.summary.thread_id
    trace = only_step(
        traces,
        has_script_calls,
        step=step,
        thread=thread,
        did="ran commands or changed files",
        did_not="ran no command and changed no file",
    )
    if trace.left_out:
        raise RefusedError(
            f"the trace of step {trace.seq} lacks {trace.left_out:,} calls beyond its limit"
        )
    files = files_of(view.start, view.records, trace.seq)
    tree = worktree_in(trace, thread) if engine.is_shared else str(engine.store.work / thread)
    top = str(PurePosixPath(tree) / files.subdirectory) if files is not None and tree else ""
    capture = capture_script(
        calls_of(trace, top=top),
        name=name,
        prompt=str(view.start.get("parameters", {}).get("prompt", "")),
        answer=answer_of(view.records, trace.seq)[1],
        named=named,
    )
    return ScriptCandidate(
        wording=capture.captured.wording,
        view=view,
        seq=trace.seq,
        capture=capture,
        environment=environment,
    )


def worktree_in(trace: StepTrace, thread: str) -> str:
    """Return the worktree in which an agent worked on some worker, as its calls name it; "" if none
    does.
    """
    named = re.compile(rf"/[^\s'\"=:]*/{thread}(?=[\s'\"/;&|)]|$)")
    texts = (text for call in trace.calls for text in texts_in(call["arguments"]))
    return next((found[0] for text in texts if (found := named.search(text))), "")


def has_script_calls(trace: StepTrace) -> bool:
    """Tell whether an agent ran a command or changed a file."""
    return any(isinstance(call.action, Command | FileWrite | FileEdit) for call in calls_of(trace))


def printed_differences(expected: Sequence[Expected], found: TrialResult) -> list[str]:
    """Return how what a script printed differs from what the recorded calls did."""
    result: Mapping[str, Any] = found.result if isinstance(found.result, Mapping) else {}
    data = result.get("data")
    text = str(data.get("stdout", "")) if isinstance(data, Mapping) else ""
    for one in expected:
        if one.characters < 0:
            return []
        head, is_whole = one.head, len(one.head) == one.characters
        stdout, complaints, _ = head.partition(_COMPLAINTS)
        is_whole = is_whole or bool(complaints)
        wanted = stdout if text.startswith(stdout) else stdout.rstrip("\n")
        if not text.startswith(wanted):
            shown = " ".join(text.split())[:80]
            return [
                f"call {one.number} printed {' '.join(stdout.split())[:80]!r}, and it is {shown!r} now"
            ]
        if not is_whole:
            text = text[one.characters :]
            continue
        text = text[len(wanted) :]
        if wanted != stdout or not stdout.endswith("\n"):
            text = text.removeprefix("\n")
    if text.strip():
        return [f"it also printed {' '.join(text.split())[:80]!r}"]
    return []
