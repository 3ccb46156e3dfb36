"""Proof of a changed flow: what a machine can check before a person decides.

A proof runs nothing for which the flow's present version has no permission: a version with a wider
policy is replayed, and tried only after a person granted it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.builders.recipes.recipe import load_json
from uncaged_bundles.builders.recipes.recipe_text import recipe_source
from uncaged_bundles.clean import shorten
from uncaged_bundles.errors import BundleError, UncagedError
from uncaged_bundles.examples import Example
from uncaged_bundles.limits import ScriptLimits
from uncaged_bundles.policy import widening
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.door.effects import Cancel
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.services.registry import KNOWN
from uncaged_engine.services.trials import Decisions, TrialEffect, TrialResult

from .case import FixCase, RecordedStep
from .failed import FLOW_FILE, FailedThread, recipe_of
from .values import changed_values

__all__ = ["Proof", "changed_bundle", "prove"]

SHOWN = 300
MAX_LISTED = 20
READING = frozenset({"all", "ask", "fetch", "http", "llm", "now", "script", "search", "sleep"})
"""Kinds of effects that change no file of the caller, but for what a script may write."""
NOT_GRANTED = "not run: its policy is wider, and is not granted yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """after: the changed bundle. evidence: JSON data. problems: why the proof did not hold; none if
    it did.
    """

    after: Bundle | None
    evidence: Mapping[str, object]
    problems: tuple[str, ...]

    def document(self) -> dict[str, object]:
        """Return the proof as JSON data."""
        return {
            "held": not self.problems,
            "to": None if self.after is None else self.after.hash,
            "problems": list(self.problems),
            "evidence": dict(self.evidence),
        }


def changed_bundle(text: str, failed: FailedThread) -> Bundle:
    """Return the bundle of the text of a changed ``flow.json``.

    Raises:
        BundleError: it cannot be built, or is another flow.
    """
    name = failed.bundle.descriptor.name
    try:
        recipe = load_json(text.encode())
        source = recipe_source(recipe, name, KNOWN)
        return read_bundle(source, KNOWN, check_schemas=True)
    except BundleError as exc:
        raise BundleError(f"{FLOW_FILE}: {exc}") from exc


def prove(
    engine: Engine,
    failed: FailedThread,
    text: str,
    *,
    ignored: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    cancel: Cancel,
) -> Proof:
    """Check a changed ``flow.json`` against everything that is recorded, and try it.

    Args:
        ignored: files besides it that were changed. directory, environment: those of trials.
            cancel: ends them.
    """
    case = failed.case
    head: dict[str, object] = {"error": case.sign, "cause": shorten(case.cause, SHOWN)}
    if ignored:
        head["ignored"] = list(ignored)[:MAX_LISTED]
    try:
        after = changed_bundle(text, failed)
    except BundleError as exc:
        return Proof(after=None, evidence=head, problems=(str(exc),))
    if after.hash == failed.bundle.hash:
        return Proof(after=None, evidence=head, problems=(f"{FLOW_FILE} is unchanged",))
    if after.trusted:
        return Proof(after=None, evidence=head, problems=("a fix cannot make a flow trusted",))
    wider = widening(failed.bundle.descriptor.policy, after.descriptor.policy, KNOWN)
    may_run = not wider or engine.registry.granted(after)
    trials = _Trials(engine, after, directory, environment, cancel, may_run=may_run)
    replays, problem, altered = _replays(engine, failed, after)
    examples = list(_examples(trials, failed.bundle, after))
    changed = changed_values(case.params, failed.bundle, after, directory)
    tried, unsuccessful = _tried(trials, case, changed)
    found = [*altered, *_attention(failed.bundle, after)]
    evidence: dict[str, object] = {
        "policy": list(wider) or "not wider",
        **({"attention": found} if found else {}),
        **head,
        **replays,
        "examples": examples or "none",
        "trial": tried,
    }
    problems = [
        *([problem] if problem else []),
        *(
            f"the example {one['sentence']!r} fails: {one['message']}"
            for one in examples
            if one["outcome"] == "failed"
        ),
        *([unsuccessful] if unsuccessful else []),
    ]
    return Proof(after=after, evidence=evidence, problems=tuple(problems))


def _replays(
    engine: Engine, failed: FailedThread, after: Bundle
) -> tuple[dict[str, object], str | None, list[str]]:
    """Return the evidence of replays: the failed thread's steps before the failing one, and all
    other threads of the flow; how the former differ; and which threads with success would have had
    another result.
    """
    keep = failed.case.keep
    prefix: object = "not replayed"
    problem: str | None = f"thread {failed.id} could not be replayed"
    different: list[dict[str, object]] = []
    altered: list[str] = []
    others = 0
    for one in engine.check(failed.flow, after):
        if one.thread_id == failed.id:
            same = one.identical or one.step > keep
            prefix = f"{keep} step{'' if keep == 1 else 's'}, identical" if same else one.message
            problem = None if same else f"a step before the failing one changes: {one.message}"
            continue
        others += 1
        if not one.identical:
            different.append(
                {"thread": one.thread_id, "step": one.step, "how": shorten(one.message, SHOWN)}
            )
            if one.results is not None and all(map(_is_success, one.results)):
                old, new = (shorten(_shown(result), SHOWN // 3) for result in one.results)
                altered.append(f"{one.thread_id} had success with {old}; its result is {new} now")
    altered = altered[:MAX_LISTED]
    threads = {"replayed": others, "identical": others - len(different)}
    if different:
        return (
            {
                "prefix": prefix,
                "threads": {**threads, "different": different[:MAX_LISTED]},
            },
            problem,
            altered,
        )
    return {"prefix": prefix, "threads": threads}, problem, altered


def _is_success(result: object) -> bool:
    return not isinstance(result, Mapping) or result.get("success", True) is True


def _shown(result: object) -> str:
    data = result.get("message") or result.get("data") if isinstance(result, Mapping) else result
    return json.dumps(data, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Trials:
    """Trials of one bundle. may_run: a person has granted its policy."""

    engine: Engine
    after: Bundle
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
        options = RunOptions(directory=self.directory, environment=self.environment)
        try:
            return self.engine.trial(
                self.after,
                prompt=prompt,
                params=params,
                directory=self.directory if self._only_reads() else None,
                options=options,
                decisions=decisions,
                cancel=self.cancel,
            )
        except UncagedError as exc:
            return str(exc)

    def _only_reads(self) -> bool:
        """Tell whether the flow changes no file: its scripts may run where the caller's are, whose
        files they read.
        """
        limits = self.after.descriptor.policy.limits
        return READING.issuperset(limits) and not ScriptLimits.of(limits.get("script", {})).write


def _tried(trials: _Trials, case: FixCase, changed: Mapping[str, object]) -> tuple[str, str | None]:
    """Return the outcome of a run with the failed thread's own values, and how it failed.

    Args:
        changed: values that the new version gives otherwise.
    """
    decisions = Decisions(known=_recorded(case))
    done = trials.run(case.prompt, {**case.params, **changed}, decisions)
    if isinstance(done, str):
        return done, None if done == NOT_GRANTED else f"the trial cannot start: {done}"
    if done.ending in ("held", "unable"):
        step = done.unproved.effect.step if done.unproved is not None else len(done.effects) + 1
        return f"unproved at step {step}: {shorten(done.message, SHOWN)}", None
    if not done.success:
        why = shorten(_message(done), SHOWN)
        return f"without success: {why}", f"a run with the same values fails: {why}"
    recorded = [str(one.effect.step) for one in done.effects if one.source == "recorded"]
    word = f"; recorded outcomes at step {', '.join(recorded)}" if recorded else ""
    word += "".join(
        f"; with {name} {json.dumps(value, ensure_ascii=False)}" for name, value in changed.items()
    )
    return f"success: {shorten(_message(done), SHOWN)}{word}", None


def _recorded(case: FixCase) -> Any:
    """Return the function that finds the recorded outcome of an effect: those before the failing
    step.
    """
    known: dict[str, RecordedStep] = {}
    for step in case.steps[: case.keep]:
        for one in (step, *step.parts):
            known[_mark(one.kind, one.body)] = one

    def find(effect: TrialEffect) -> Outcome | None:
        step = known.get(_mark(effect.kind, effect.body))
        if step is None or effect.flows:
            return None
        if step.error is not None:
            return Failure(error=step.error)
        return Answer(fields={"outcome": step.outcome})

    return find


def _mark(kind: str, body: object) -> str:
    shown = body
    if isinstance(body, Mapping):
        shown = {key: value for key, value in body.items() if key not in ("retry", "label")}
    return json.dumps([kind, shown], sort_keys=True)


def _examples(trials: _Trials, before: Bundle, after: Bundle) -> Iterator[dict[str, str]]:
    """Yield the result of each example, also of those that the changed flow lacks."""
    listed = {json.dumps(raw, sort_keys=True): raw for raw in _listed(before) + _listed(after)}
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


def _attention(before: Bundle, after: Bundle) -> Iterator[str]:
    """Yield changes of what checks a flow, which a person has to see."""
    old, new = _listed(before), _listed(after)
    for raw in old:
        if raw not in new:
            yield f"an example was changed or removed: {shorten(json.dumps(raw, ensure_ascii=False), SHOWN)}"
    if not new and old:
        yield "no example is left"
    first, second = (dict(recipe_of(one)) for one in (before, after))
    for key in sorted({*first, *second} - {"script", "steps", "policy", "examples", "parameters"}):
        if first.get(key) != second.get(key):
            yield f"{key} was changed"


def _listed(bundle: Bundle) -> list[Any]:
    return list(shapes.items(bundle.descriptor.raw.get("examples", []), ("examples",)))


def _message(done: TrialResult) -> str:
    result = done.result if isinstance(done.result, Mapping) else {}
    return str(result.get("message") or done.message)
