"""Browser effects whose element is not found: the search for one that takes its place; and those
whose page has a reworded title or heading.

A step of a recipe goes on, and says so under ``healed``. Any other flow gets the error, with the
element in it as a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.carried.web import fill
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.services.settings import Config

from ..healing.drift import begin_comparison
from ..healing.healed import HealedExpectation, HealedTarget, Healing, outcome_of
from ..healing.performing import perform_healed, searched, with_candidate
from ..healing.recipes import values_in_target
from ..healing.search import MISSING, HealingResult, begin_search, run_search
from ..healing.sought import HEALED
from ..healing.versions import recipe_steps, was_rejected
from ..operations import Operation, read_operation, write_operation
from ..problems import BrowserProblem

__all__ = ["heal_mode", "perform_or_heal"]

Perform = Callable[[Mapping[str, object], float], Any]
"""Performs the operation of a mapping within so many seconds."""
MODES = ("off", "propose", "apply")


def heal_mode(start: Mapping[str, object], config: Config) -> str:
    """Return the mode of healing: that of the thread, else the config's."""
    mode = start.get("heal")
    return mode if isinstance(mode, str) and mode in MODES else config.browser.heal


def perform_or_heal(
    operation: Operation, body: Mapping[str, object], context: EffectContext, perform: Perform
) -> object:
    """Perform an operation; if its element is not found, perhaps with one that takes its place.

    Raises:
        BrowserProblem: it failed; the message has the candidate, if there is one.
    """
    steps = recipe_steps(context.bundle.source) if _may_heal(context) else None
    if steps is None or not (steps or isinstance(operation, HEALED)):
        return perform(body, operation.timeout_s)
    flow = HealedFlow(steps, context)
    answer, targets = _performed(operation, body, flow, perform)
    expectations = _expectation(operation, answer, flow, perform) if steps else ()
    return outcome_of(answer, (*targets, *expectations))


class HealedFlow:
    """Steps of a recipe, none for a script, in a thread that has performed some of them."""

    def __init__(self, steps: Sequence[Mapping[str, object]], context: EffectContext) -> None:
        self.is_recipe = bool(steps)
        self.context = context
        self._steps = steps

    def operation(self, ahead: int = 0) -> Operation | None:
        """Return the operation of the current step, or of one so many ahead; None without one."""
        step = self._step(ahead)
        return None if step is None else self._read(step)

    def operations(self) -> list[Operation]:
        """Return the operations of all steps."""
        return [one for step in self._steps if (one := self._read(step)) is not None]

    def values(self, ahead: int = 0) -> tuple[str, ...]:
        """Return the values of parameters in the targets of a step."""
        return values_in_target(self._step(ahead), self._params())

    def was_rejected(self, healed: Sequence[Healing]) -> bool:
        """Tell whether a person decided against one of these healings for this version."""
        return was_rejected(healed, self.context.store, self.context.bundle.hash)

    def _read(self, step: Mapping[str, object]) -> Operation | None:
        bare = {key: one for key, one in step.items() if key != "keep"}
        try:
            return read_operation(fill("", bare, self._params()))
        except shapes.ShapeError:
            return None  # performed, it fails by itself

    def _step(self, ahead: int) -> Mapping[str, object] | None:
        number = sum("outcome" in step for step in self.context.steps()) + ahead
        return self._steps[number] if number < len(self._steps) else None

    def _params(self) -> Mapping[str, Any]:
        parameters: Any = self.context.start["parameters"]
        return shapes.mapping(parameters["params"], ("params",))


def _may_heal(context: EffectContext) -> bool:
    kind = context.bundle.descriptor.kind
    return (
        kind == "web" and context.part is None and heal_mode(context.start, context.config) != "off"
    )


def _performed(
    operation: Operation, body: Mapping[str, object], flow: HealedFlow, perform: Perform
) -> tuple[object, tuple[Healing, ...]]:
    """Return the answer of an operation, and what was healed for it."""
    targets: list[HealedTarget] = []

    def search() -> HealingResult:
        begun = begin_search(operation, flow.operations(), flow.values())
        return searched(begun, _looking(perform), flow.was_rejected)

    if flow.is_recipe:
        answer = perform_healed(
            operation,
            body,
            perform=lambda changed: perform(changed, operation.timeout_s),
            search=search,
            use=targets.extend,
        )
        return answer, tuple(targets)
    try:
        return perform(body, operation.timeout_s), ()
    except BrowserProblem as exc:
        if exc.kind not in MISSING or not isinstance(operation, HEALED):
            raise
        raise with_candidate(exc, search()) from exc


def _expectation(
    operation: Operation, answer: object, flow: HealedFlow, perform: Perform
) -> tuple[HealedExpectation, ...]:
    """Return the expectation that a page's reworded title or heading fits; none without drift, or
    if the page differs by more.
    """
    drift = answer.get("drift") if isinstance(answer, Mapping) else None
    if not drift:
        return ()
    comparison = begin_comparison(
        operation, drift, flow.operation(1), flow.operations(), flow.values(1)
    )
    found: HealedExpectation | None = run_search(comparison, _looking(perform))
    return () if found is None or flow.was_rejected((found,)) else (found,)


def _looking(perform: Perform) -> Callable[[Operation], object]:
    return lambda wanted: perform(write_operation(wanted), wanted.timeout_s)
