"""Replay of a recording in a browser: each step by the first alternative that matches, or by an
element that takes the place of the recorded one, until the page differs from the recorded one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

from uncaged_bundles import shapes
from uncaged_bundles.carried.web import fill
from uncaged_bundles.records import dataclass
from uncaged_bundles.records import replace as record_replace

from ..control import BrowserControl
from ..healing.drift import begin_comparison
from ..healing.healed import Healing, with_healed
from ..healing.recipes import healed_recipe, values_in_target
from ..healing.search import FIND_S, MISSING, HealingResult, Reading, begin_search
from ..healing.sought import HEALED
from ..operations import Operation, read_operation
from ..problems import BrowserProblem
from .recipe import recipe_of
from .recording import Recording, RecordingError

__all__ = ["Heal", "RecordingReplay", "ReplayedStep", "replay"]

Heal = Literal["off", "propose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedStep:
    """One step. alternative: the number of the one that matched; None without a target. drift:
    differences of the page, with both sides. problem: the reason why it failed. healed: the targets
    whose elements were found by likeness, and an expectation whose page was reworded; not_healed:
    why no element was found.
    """

    operation: Operation
    alternative: int | None = None
    drift: tuple[Mapping[str, object], ...] = ()
    problem: BrowserProblem | None = None
    healed: tuple[Healing, ...] = ()
    not_healed: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether it was performed and its page fits."""
        return self.problem is None and not self.drift


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingReplay:
    """Steps in order; the last one is the one that failed, if any did. total: steps of the
    recording. recipe: that was performed, with these values of its parameters.
    """

    steps: tuple[ReplayedStep, ...]
    total: int
    recipe: Mapping[str, object] = MappingProxyType({})
    values: Mapping[str, object] = MappingProxyType({})

    @property
    def succeeded(self) -> bool:
        """Whether all steps were performed and their pages fit."""
        return len(self.steps) == self.total and all(step.succeeded for step in self.steps)

    @property
    def proposed(self) -> Mapping[str, object] | None:
        """Return a recipe with the new names of the healed targets, and the new texts of healed
        expectations; None if the replay did not succeed, or nothing was healed.
        """
        healed = {number: one.healed for number, one in enumerate(self.steps) if one.healed}
        if not self.succeeded or not healed:
            return None
        return healed_recipe(self.recipe, healed, self.values)


async def replay(
    recording: Recording,
    control: BrowserControl,
    parameters: Mapping[str, object] | None = None,
    heal: Heal = "off",
) -> RecordingReplay:
    """Perform the steps of a recording.

    Args:
        parameters: values by name (`Recording.propose_parameters`, and ``origin``); the recorded
            value is the default. heal: ``propose`` takes an element that is like the recorded one
            where that is not found, goes on where a title or heading is reworded, and proposes a
            recipe with what is there now.
    Raises:
        RecordingError: it goes to other hosts than it names, or has no parameter of a name.
    """
    recipe = recipe_of(recording, recording.name, None)
    values = _values(recipe, parameters or {})
    bodies = shapes.items(recipe["steps"], ("steps",))
    operations = [read_operation(fill("", body, values)) for body in bodies]
    done: list[ReplayedStep] = []
    data = [values_in_target(body, values) for body in bodies]
    for number, operation in enumerate(operations):
        if heal == "propose":
            step = await _perform_or_heal(operation, control, operations, data[number])
            if step.problem is None and step.drift and number + 1 < len(operations):
                following = operations[number + 1]
                comparison = begin_comparison(
                    operation, step.drift, following, operations, data[number + 1]
                )
                found = await _searched(comparison, control)
                if found is not None:
                    step = record_replace(step, drift=(), healed=(*step.healed, found))
        else:
            step = await _perform(operation, control)
        done.append(step)
        if not step.succeeded:
            break
    return RecordingReplay(steps=tuple(done), total=len(bodies), recipe=recipe, values=values)


def _values(recipe: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    declared = shapes.mapping(recipe["parameters"], ("parameters",))
    unknown = [name for name in changes if name not in declared]
    if unknown:
        raise RecordingError(
            "malformed",
            f"the recording has no parameter {', '.join(unknown)}; it has: {', '.join(declared)}",
        )
    defaults = {
        name: shapes.mapping(one, ("parameters", name)).get("default")
        for name, one in declared.items()
    }
    return {**defaults, **changes}


async def _perform(operation: Operation, control: BrowserControl) -> ReplayedStep:
    try:
        answer = await control.perform(operation)
    except BrowserProblem as exc:
        return ReplayedStep(operation=operation, problem=exc)
    fields = answer if isinstance(answer, dict) else {}
    return ReplayedStep(
        operation=operation,
        alternative=fields.get("alternative"),
        drift=tuple(fields.get("drift", ())),
    )


async def _perform_or_heal(
    operation: Operation,
    control: BrowserControl,
    steps: Sequence[Operation],
    data: Sequence[str],
) -> ReplayedStep:
    """Perform a step; if its element is not found, with one that takes its place."""
    if not isinstance(operation, HEALED):
        return await _perform(operation, control)
    hasty: Any = replace(operation, find_s=min(FIND_S, operation.timeout_s))
    step = await _perform(hasty, control)
    step = record_replace(step, operation=operation)
    if step.problem is None or step.problem.kind not in MISSING:
        return step
    found: HealingResult = await _searched(begin_search(operation, steps, data), control)
    if not found.healed:
        again = await _perform(operation, control)
        return record_replace(again, not_healed=found.reason if again.problem else "")
    healed = read_operation(with_healed(operation, found.healed))
    return record_replace(await _perform(healed, control), operation=operation, healed=found.healed)


async def _searched(search: Reading, control: BrowserControl) -> Any:
    """Return what a search returns, whose operations are performed."""
    answer: object = None
    problem: BrowserProblem | None = None
    while True:
        try:
            wanted = search.send(answer) if problem is None else search.throw(problem)
        except StopIteration as stop:
            return stop.value
        problem = None
        try:
            answer = await control.perform(wanted)
        except BrowserProblem as exc:
            answer, problem = None, exc
