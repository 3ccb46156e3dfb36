"""Failed thread as data: the recipe of its flow, its steps, and where and how it failed. It is read
from records alone, whether they come from the store or from the scratch repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uncaged_bundles.examples import Example

__all__ = [
    "EXAMPLE",
    "LACKING",
    "FailedStep",
    "FixCase",
    "Recipe",
    "RecordedStep",
    "read_case",
    "wrong_example",
]

Recipe = Mapping[str, Any]
EXAMPLE = "example"
"""Kind of error of a thread with success whose result an example does not expect."""
LACKING = "environment"
"""Kind of error of an effect for which the machine lacks something; its thread is paused."""
RAISED = re.compile(r": (?P<type>[A-Za-z_]\w*): ")
"""In the error of a task: the type of the exception that its script raised."""
NEXT_STEP = re.compile(r"[;\n] ?\w+ it with 'uncaged-workflow edit")
"""What a driver adds to the error of its flow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """A finished step. kind, body: its effect; "" and None for what the bundle recorded itself.

    outcome: None if it failed with *error*. parts: the effects inside a composite one, in order.
    """

    seq: int
    kind: str
    body: Any
    outcome: Any = None
    error: Mapping[str, Any] | None = None
    parts: tuple[RecordedStep, ...] = ()

    @property
    def problem(self) -> FailedStep | None:
        """How the step failed; None if it did not."""
        inside = next((one.problem for one in self.parts if one.problem is not None), None)
        if inside is not None:
            return inside
        if self.error is not None:
            message = str(self.error.get("message", ""))
            return FailedStep(step=self, word=str(self.error.get("kind", "error")), message=message)
        if not isinstance(self.outcome, Mapping):
            return None
        word, message = _problem_in(self.kind, self.outcome)
        return FailedStep(step=self, word=word, message=message) if word else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStep:
    """word: a kind of error, such as ``policy``, ``status 404``, ``exit 2``, ``refused``."""

    step: RecordedStep
    word: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FixCase:
    """before: the steps of the flow's last thread with success, if there is one.

    failed: the last step that failed; None if the flow failed by itself after its last step.
    word: the kind of error. cause: the error in the flow's words. params: those of the run.
    """

    recipe: Recipe
    steps: tuple[RecordedStep, ...]
    before: tuple[RecordedStep, ...]
    failed: FailedStep | None
    word: str
    cause: str
    prompt: str
    params: Mapping[str, Any]

    @property
    def keep(self) -> int:
        """How many steps a fork keeps, so that what failed is done again."""
        return self.failed.step.seq - 1 if self.failed is not None else len(self.steps)

    @property
    def place(self) -> str:
        """Where it failed, in a few words."""
        if self.failed is not None:
            return f"step {self.failed.step.seq} ({self.failed.step.kind})"
        return f"after step {self.keep}" if self.keep else "before the first step"

    @property
    def sign(self) -> str:
        """Error kind and place; equal for failures of the same kind."""
        return f"{self.word}, {self.place}"

    @property
    def flow(self) -> str:
        return str(self.recipe.get("name") or self.recipe.get("actionName") or "")

    @property
    def language(self) -> str:
        """The language of the flow's script; "" without one."""
        script = self.recipe.get("script")
        if isinstance(script, Mapping):
            return str(script.get("language", "powershell"))
        return "python" if isinstance(script, str) else ""

    @property
    def text(self) -> str:
        """The flow's script; "" without one."""
        script = self.recipe.get("script")
        if isinstance(script, Mapping):
            return str(script.get("body", ""))
        return script if isinstance(script, str) else ""

    @property
    def parameters(self) -> tuple[Mapping[str, Any], ...]:
        """The parameters of the recipe."""
        listed = self.recipe.get("parameters", [])
        return tuple(one for one in listed if isinstance(one, Mapping))

    @property
    def message(self) -> str:
        """All texts of the error."""
        return "\n".join((self.cause, self.failed.message if self.failed is not None else ""))

    def limits(self, kind: str) -> Mapping[str, Any]:
        """Return the limits of an effect kind in the recipe's policy."""
        policy = self.recipe.get("policy", {})
        limits = policy.get(kind, {}) if isinstance(policy, Mapping) else {}
        return limits if isinstance(limits, Mapping) else {}

    def with_limits(self, kind: str, **more: object) -> Recipe:
        """Return the recipe with further limits of an effect kind in its policy."""
        policy = self.recipe.get("policy", {})
        return {**self.recipe, "policy": {**policy, kind: {**self.limits(kind), **more}}}

    def with_text(self, text: str) -> Recipe:
        """Return the recipe with another script."""
        script = self.recipe["script"]
        changed = {**script, "body": text} if isinstance(script, Mapping) else text
        return {**self.recipe, "script": changed}


def read_case(
    recipe: Recipe,
    records: Sequence[Mapping[str, Any]],
    before: Sequence[Mapping[str, Any]] = (),
) -> FixCase:
    """Return the case of a journal's records, the start record first.

    Args:
        before: the records of the last thread with success.
    """
    start = records[0] if records else {}
    steps, end = tuple(_steps(records)), next((one for one in records if "end" in one), {})
    parameters = start.get("parameters", {})
    failed = next((one for step in reversed(steps) if (one := step.problem) is not None), None)
    wrong = wrong_example(recipe.get("examples", []), start, end)
    word, cause = (EXAMPLE, wrong) if wrong is not None else _cause(end)
    if wrong is not None and steps and isinstance(recipe.get("script"), Mapping):
        failed = FailedStep(step=steps[-1], word=EXAMPLE, message=wrong)
    return FixCase(
        recipe=recipe,
        steps=steps,
        before=tuple(_steps(before)),
        failed=failed,
        word=failed.word if failed is not None else word,
        cause=cause or (failed.message if failed is not None else ""),
        prompt=str(parameters.get("prompt", "")),
        params=parameters.get("params", {}),
    )


def wrong_example(examples: object, start: Mapping[str, Any], end: Mapping[str, Any]) -> str | None:
    """Return how the result of a thread with success differs from what the example with its
    sentence and values expects; None if it does not.

    Args:
        start, end: records of the thread.
    """
    parameters, result = start.get("parameters", {}), end.get("result")
    if not isinstance(examples, list) or not isinstance(result, Mapping):
        return None
    if result.get("success", True) is False:
        return None
    for index, raw in enumerate(examples):
        example = Example.read(raw, ("examples", index))
        params = parameters.get("params", {})
        if example.sentence == parameters.get("prompt") and example.params is not None:
            difference = example.difference({"message": "", **result, "success": True})
            if {**params, **example.params} == params and difference is not None:
                return f"the example {example.sentence!r} fails: {difference}"
    return None


def _steps(records: Sequence[Mapping[str, Any]]) -> Iterator[RecordedStep]:
    intents: dict[int, Any] = {}
    lacks: dict[int, str] = {}
    for record in records:
        seq = record.get("seq")
        if not isinstance(seq, int) or "sub" in record:
            continue
        if "intent" in record:
            intents[seq] = record["intent"]
        elif record.get("void") == "environment":
            lacks[seq] = str(record.get("message", ""))
        elif "outcome" in record or "error" in record or "role" in record:
            lacks.pop(seq, None)
            yield _step(seq, intents.get(seq), record)
    for seq, message in lacks.items():  # the thread is paused there
        yield _step(seq, intents.get(seq), {"error": {"kind": LACKING, "message": message}})


def _step(seq: int, intent: Any, record: Mapping[str, Any]) -> RecordedStep:
    kind, body = "", None
    if isinstance(intent, Mapping) and len(intent) == 1:
        [(kind, body)] = intent.items()
    outcome, error = record.get("outcome"), record.get("error")
    parts: tuple[RecordedStep, ...] = ()
    if kind == "all" and isinstance(body, Mapping) and isinstance(outcome, list):
        effects = body.get("effects", [])
        parts = tuple(
            _step(seq, effect, answer)
            for effect, answer in zip(effects, outcome, strict=False)
            if isinstance(answer, Mapping)
        )
    return RecordedStep(seq=seq, kind=kind, body=body, outcome=outcome, error=error, parts=parts)


def _problem_in(kind: str, outcome: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of error of an outcome, and its message; "" and "" for one that is none."""
    match kind:
        case "http":
            status = outcome.get("status")
            if isinstance(status, int) and status >= 400:
                text = outcome.get("text") or outcome.get("json") or ""
                return f"status {status}", f"HTTP {status}: {str(text)[:2000]}"
        case "script" if outcome.get("success") is False:
            refused = outcome.get("refused", [])
            text = "\n".join([str(outcome.get("stderr", "")), *refused]).strip()
            word = "timeout" if outcome.get("timedOut") else f"exit {outcome.get('exitCode')}"
            return "refused" if refused else word, text
        case "flow" if outcome.get("success") is False:
            return "flow", str(outcome.get("message", ""))
    return "", ""


def _cause(end: Mapping[str, Any]) -> tuple[str, str]:
    """Return kind and text of the error with which a thread ended."""
    error = end.get("error")
    if isinstance(error, Mapping):
        return str(error.get("type") or error.get("kind", "error")), str(error.get("message", ""))
    result = end.get("result")
    if not isinstance(result, Mapping):
        return "result", ""
    stated = result.get("error")
    text = stated if isinstance(stated, str) and stated else str(result.get("message", ""))
    raised = RAISED.search(text)
    return (
        raised["type"] if raised is not None else "result",
        NEXT_STEP.split(text)[0],
    )
