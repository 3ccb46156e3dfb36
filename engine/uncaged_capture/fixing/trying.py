"""Trials of a changed flow: with the values of the failed thread, and of the examples of both
versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.clean import shorten
from uncaged_bundles.errors import UncagedError
from uncaged_bundles.examples import Example
from uncaged_bundles.limits import ScriptLimits
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.door.effects import Cancel
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.services.trials import Decisions, TrialEffect, TrialResult

from .case import LACKING, FixCase, RecordedStep
from .pages import WEB, trial_page
from .scratch import make_repository

__all__ = ["SHOWN", "Trials", "examples", "listed_examples", "message_of", "tried"]

SHOWN = 300
READING = frozenset({"all", "ask", "fetch", "http", "llm", "now", "script", "search", "sleep"})
"""Kinds of effects that change no file of the caller, but for what a script may write."""
REPEATED = frozenset({"all", "now", "script", "sleep"})
"""Kinds of effects that may be performed again at will."""
NOT_GRANTED = "not run: its policy is wider, and is not granted yet"


@dataclass(frozen=True, slots=True)
class Trials:
    """Trials of one bundle. may_run: a person has granted its policy."""

    engine: Engine
    bundle: Bundle
    directory: Path
    environment: Mapping[str, str]
    cancel: Cancel
    may_run: bool

    def run(
        self, prompt: str, params: Mapping[str, object], decisions: Decisions
    ) -> TrialResult | str:
        """Return a trial, or why it cannot be started."""
        if not self.may_run:
            return NOT_GRANTED
        if self.cancel.requested:
            return "it was cancelled"
        try:
            with self._options() as options, self._page() as instead:
                return self.engine.trial(
                    self.bundle,
                    prompt=prompt,
                    params=params,
                    directory=self.directory if self._only(READING) else None,
                    options=options,
                    decisions=decisions if instead is None else replace(decisions, instead=instead),
                    cancel=self.cancel,
                )
        except UncagedError as exc:
            return str(exc)

    @contextmanager
    def _options(self) -> Iterator[RunOptions]:
        """Yield the options of a trial. A role is bound to a person and has an empty repository:
        its recorded answer is used, and nothing else is asked for.
        """
        options = RunOptions(directory=self.directory, environment=self.environment)
        role = self.bundle.descriptor.policy.limits.get("role")
        if role is None:
            yield options
        elif "workspace" not in role:
            yield replace(options, agents={"": "person"})
        else:
            with TemporaryDirectory(prefix="uncaged-fix-") as place:
                repository = Path(place) / "repository"
                make_repository(repository, {"README": "\n"}, self.environment)
                yield replace(options, agents={"": "person"}, workspace=repository)

    @contextmanager
    def _page(self) -> Iterator[Callable[[TrialEffect], Outcome | None] | None]:
        """Yield what performs the effects of a web flow, each trial in a fresh context."""
        if self.bundle.descriptor.kind != WEB:
            yield None
            return
        with trial_page(self.engine, self.bundle, self.environment) as perform:
            yield perform

    def repeats_scripts(self) -> bool:
        """Tell whether the flow does nothing but run scripts that neither write nor use the
        network.
        """
        limits = self.bundle.descriptor.policy.limits
        script = ScriptLimits.of(limits.get("script", {}))
        return "script" in limits and self._only(REPEATED) and not script.network

    def _only(self, kinds: frozenset[str]) -> bool:
        """Tell whether the flow has effects of these kinds alone, and changes no file: its scripts
        may run where the caller's are, whose files they read.
        """
        limits = self.bundle.descriptor.policy.limits
        return kinds.issuperset(limits) and not ScriptLimits.of(limits.get("script", {})).write


def message_of(result: object) -> str:
    """Return the message of a thread's result; of one without, its JSON text."""
    if isinstance(result, Mapping) and isinstance(result.get("message"), str):
        return str(result["message"])
    return json.dumps(result, ensure_ascii=False, sort_keys=True)


def tried(
    trials: Trials, case: FixCase, changed: Mapping[str, object], lost: Sequence[str]
) -> tuple[str, str | None, str | None]:
    """Return the outcome of a run with the failed thread's own values, how it failed, and the
    message of one with success.

    Args:
        changed: values that the new version gives otherwise. lost: names of values of which it is
            not known how they were written.
    """
    decisions = Decisions(known=_recorded(case))
    done = trials.run(case.prompt, {**case.params, **changed}, decisions)
    if isinstance(done, str):
        return done, None if done == NOT_GRANTED else f"the trial cannot start: {done}", None
    if done.ending == "unable" and case.word == LACKING:
        why = shorten(done.message, SHOWN)
        return f"paused: {why}", f"a run with the same values pauses: {why}", None
    if done.ending in ("held", "unable"):
        steps = [one.effect.step for one in done.effects if one.source == "held"]
        step = steps[0] if steps else len(done.effects) + 1
        return f"unproved at step {step}: {shorten(done.message, SHOWN)}", None, None
    if not done.success:
        why = shorten(_message(done), SHOWN)
        if lost:
            return f"unproved: {', '.join(lost)} was recorded as a number; {why}", None, None
        return f"without success: {why}", f"a run with the same values fails: {why}", None
    recorded = [str(one.effect.step) for one in done.effects if one.source == "recorded"]
    word = f"; recorded outcomes at step {', '.join(recorded)}" if recorded else ""
    word += "".join(
        f"; with {name} {json.dumps(value, ensure_ascii=False)}" for name, value in changed.items()
    )
    return f"success: {shorten(_message(done), SHOWN)}{word}", None, message_of(done.result)


def _recorded(case: FixCase) -> Any:
    """Return the function that finds the recorded outcome of an effect: those before the failing
    step. The answer of a role belongs to its step, since roles see those before it.
    """
    known: dict[str, RecordedStep] = {}
    for step in case.steps[: case.keep]:
        for one in (step, *step.parts):
            known[_mark(one.kind, one.body, one.seq)] = one

    def find(effect: TrialEffect) -> Outcome | None:
        step = known.get(_mark(effect.kind, effect.body, effect.seq))
        if step is None or effect.flows:
            return None
        if step.error is not None:
            return Failure(error=step.error)
        if step.answer is not None:
            return Answer(fields=step.answer)
        return Answer(fields={"outcome": step.outcome})

    return find


def _mark(kind: str, body: object, seq: int) -> str:
    shown = body
    if isinstance(body, Mapping):
        shown = {key: value for key, value in body.items() if key not in ("retry", "label")}
    return json.dumps([kind, shown, *([seq] if kind == "role" else [])], sort_keys=True)


def examples(trials: Trials, before: Bundle, after: Bundle) -> Iterator[dict[str, str]]:
    """Yield the result of each example, also of those that the changed flow lacks."""
    listed = {
        json.dumps(raw, sort_keys=True): raw
        for raw in listed_examples(before) + listed_examples(after)
    }
    required = after.descriptor.parameters.get("required", [])
    for index, raw in enumerate(listed.values()):
        example = Example.read(raw, ("examples", index))
        shown = {"sentence": shorten(example.sentence, SHOWN)}
        if example.params is None and required:
            yield {**shown, "outcome": "skipped", "message": "it does not give its parameters"}
            continue
        done = trials.run(example.sentence, example.params or {}, Decisions())
        if isinstance(done, str):
            word = "skipped" if done == NOT_GRANTED or not example.success else "failed"
            yield {**shown, "outcome": word, "message": done}
        elif done.ending in ("held", "unable"):
            yield {**shown, "outcome": "unproved", "message": shorten(done.message, SHOWN)}
        else:
            result = done.result if isinstance(done.result, Mapping) else {}
            difference = example.difference({"success": False, "message": done.message, **result})
            word = "failed" if difference else "passed" if example.expect else "ran"
            yield {**shown, "outcome": word, "message": shorten(difference or "", SHOWN)}


def listed_examples(bundle: Bundle) -> list[Any]:
    """Return the examples of a bundle."""
    return list(shapes.items(bundle.descriptor.raw.get("examples", []), ("examples",)))


def _message(done: TrialResult) -> str:
    result = done.result if isinstance(done.result, Mapping) else {}
    return str(result.get("message") or done.message)
