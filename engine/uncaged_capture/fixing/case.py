"""Failed thread as data: the recipe of its flow, its steps, and where and how it failed. It is read
from records alone, whether they come from the store or from the scratch repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import DRIFT, cause_of, problem_in, wrong_example

__all__ = [
    "EXAMPLE",
    "LACKING",
    "FailedStep",
    "FixCase",
    "Recipe",
    "RecordedStep",
    "read_case",
]

Recipe = Mapping[str, Any]
EXAMPLE = "example"
"""Kind of error of a thread with success whose result an example does not expect."""
LACKING = "environment"
"""Kind of error of an effect for which the machine lacks something; its thread is paused."""
MOVED = frozenset({"not-found", "ambiguous", DRIFT})
"""Kinds of errors of a step whose element or page is another one."""
ANSWER = ("role", "content", "meta", "by")
"""Keys of a role's step that a replay of it has, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """A finished step. kind, body: its effect; "" and None for what the bundle recorded itself.

    outcome: None if it failed with *error*. answer: of a role, the keys of its line. parts: the
    effects inside a composite one, in order.
    """

    seq: int
    kind: str
    body: Any
    outcome: Any = None
    error: Mapping[str, Any] | None = None
    answer: Mapping[str, Any] | None = None
    loaded: bool = False
    acted: bool = False
    parts: tuple[RecordedStep, ...] = ()

    @property
    def healed(self) -> bool:
        """Whether another element was used than the flow names."""
        return isinstance(self.outcome, Mapping) and "healed" in self.outcome

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
        word, message = problem_in(self.kind, self.outcome)
        return FailedStep(step=self, word=word, message=message) if word else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStep:
    """word: a kind of error, such as ``policy``, ``status 404``, ``exit 2``, ``refused``."""

    step: RecordedStep
    word: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FixCase:
    """before: the steps of the flow's last thread with success, if there is one. page: what a web
    flow's page is like by now, as the document of a `HealedReplay` has it.

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
    page: Mapping[str, Any] | None = None

    @property
    def keep(self) -> int:
        """How many steps a changed flow repeats: those before the one that failed, or before the
        first one that used another element than the flow names.
        """
        changed = [one.seq for one in self.steps if one.healed]
        if self.failed is not None:
            changed.append(self.failed.step.seq)
        return min(changed) - 1 if changed else len(self.steps)

    @property
    def is_moved(self) -> bool:
        """Whether a step of a web flow found other things on its page than it names."""
        failed = self.failed
        return failed is not None and failed.step.kind == "browser" and failed.word in MOVED

    @property
    def fork_at(self) -> int:
        """How many steps a fork keeps. One in a browser starts at a page that was loaded, so it
        does the steps again that changed that page.
        """
        kept = self.steps[: self.keep]
        if not any(one.kind == "browser" for one in kept):
            return self.keep
        at = max((one.seq for one in kept if one.loaded), default=0)
        return at if any(one.acted for one in kept[at:]) or not at else self.keep

    @property
    def done_again(self) -> tuple[int, ...]:
        """Steps on a page that a fork does a second time."""
        return tuple(one.seq for one in self.steps[self.fork_at :] if one.acted)

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
        """The parameters of the recipe; those of a definition are a JSON Schema."""
        listed = self.recipe.get("parameters", [])
        if isinstance(listed, Mapping):
            properties = listed.get("properties", {})
            listed = [{"name": name, **one} for name, one in properties.items()]
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

    def with_parameter(self, changed: Mapping[str, Any]) -> Recipe:
        """Return the recipe with another parameter in place of the one of this name."""
        name, declared = changed["name"], self.recipe.get("parameters", [])
        if isinstance(declared, Mapping):
            schema = {key: one for key, one in changed.items() if key != "name"}
            properties = {**declared["properties"], name: schema}
            return {**self.recipe, "parameters": {**declared, "properties": properties}}
        listed = [changed if one.get("name") == name else one for one in self.parameters]
        return {**self.recipe, "parameters": listed}

    def with_text(self, text: str) -> Recipe:
        """Return the recipe with another script."""
        script = self.recipe["script"]
        changed = {**script, "body": text} if isinstance(script, Mapping) else text
        return {**self.recipe, "script": changed}


def read_case(
    recipe: Recipe,
    records: Sequence[Mapping[str, Any]],
    before: Sequence[Mapping[str, Any]] = (),
    page: Mapping[str, Any] | None = None,
) -> FixCase:
    """Return the case of a journal's records, the start record first.

    Args:
        before: the records of the last thread with success. page: as `FixCase` has it.
    """
    start = records[0] if records else {}
    steps, end = tuple(_steps(records)), next((one for one in records if "end" in one), {})
    parameters = start.get("parameters", {})
    failed = next((one for step in reversed(steps) if (one := step.problem) is not None), None)
    wrong = wrong_example(recipe.get("examples", []), start, end)
    word, cause = (EXAMPLE, wrong) if wrong is not None else cause_of(end)
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
        page=page,
    )


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
    answer = {key: record[key] for key in ANSWER if key in record} if "role" in record else None
    return RecordedStep(
        seq=seq,
        kind=kind,
        body=body,
        outcome=outcome,
        error=error,
        answer=answer,
        loaded="checkpoint" in record,
        acted="acted" in record,
        parts=parts,
    )
