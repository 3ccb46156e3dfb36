"""Browser effects whose element is not found: the search for one that takes its place.

A step of a recipe goes on with the element that is found, and says so under ``healed``. Any other
flow gets the error, with the element in it as a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.carried.web import fill
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.services.proposals import Proposals
from uncaged_engine.services.settings import Config

from ..healing.recipes import values_in_target
from ..healing.search import FIND_S, HealingResult, Search, begin_search, outcome_of, with_healed
from ..healing.sought import HEALED
from ..healing.versions import recipe_steps
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
    timeout_s = operation.timeout_s
    steps = recipe_steps(context.bundle.source) if _may_heal(operation, context) else None
    if steps is None:
        return perform(body, timeout_s)
    is_recipe = bool(steps)
    try:
        return perform({**body, "find_s": min(FIND_S, timeout_s)} if is_recipe else body, timeout_s)
    except BrowserProblem as exc:
        if exc.kind != "not-found":
            raise
        missing = exc
    found = _searched(_search(operation, steps, context), perform)
    if is_recipe and found.healed and not _was_rejected(found, context):
        healed = with_healed(operation, found.healed)
        return outcome_of(perform(healed, timeout_s), found.healed)
    if is_recipe:
        try:
            return perform(body, timeout_s)  # it may appear in the rest of the time
        except BrowserProblem as exc:
            missing = exc
    raise _with_candidate(missing, found)


def _may_heal(operation: Operation, context: EffectContext) -> bool:
    kind = context.bundle.descriptor.kind
    return (
        kind == "web"
        and isinstance(operation, HEALED)
        and context.part is None
        and heal_mode(context.start, context.config) != "off"
    )


def _search(
    operation: Operation,
    steps: Sequence[Mapping[str, object]],
    context: EffectContext,
) -> Search:
    number = sum("outcome" in step for step in context.steps())
    parameters: Any = context.start["parameters"]
    values = shapes.mapping(parameters["params"], ("params",))
    others: list[Operation] = []
    for step in steps:
        bare = {key: one for key, one in step.items() if key != "keep"}
        try:
            others.append(read_operation(fill("", bare, values)))
        except shapes.ShapeError:
            continue  # performed, it fails by itself
    raw = steps[number] if number < len(steps) else None
    return begin_search(operation, others, values_in_target(raw, values))


def _searched(search: Search, perform: Perform) -> HealingResult:
    answer: object = None
    problem: BrowserProblem | None = None
    while True:
        try:
            wanted = search.send(answer) if problem is None else search.throw(problem)
        except StopIteration as stop:
            result: HealingResult = stop.value
            return result
        problem = None
        try:
            answer = perform(write_operation(wanted), wanted.timeout_s)
        except BrowserProblem as exc:
            answer, problem = None, exc


def _was_rejected(found: HealingResult, context: EffectContext) -> bool:
    """Whether a person decided against one of these elements for this version of the flow."""
    now = {(one.before, one.after) for one in found.healed}
    for proposal in Proposals(context.store).all():
        steps = proposal.evidence.get("steps")
        if proposal.state != "rejected" or proposal.before != context.bundle.hash:
            continue
        listed = steps if isinstance(steps, list) else []
        if any((one.get("from"), one.get("to")) in now for one in listed if isinstance(one, dict)):
            return True
    return False


def _with_candidate(missing: BrowserProblem, found: HealingResult) -> BrowserProblem:
    after = [one.after for one in found.healed] or [found.candidate]
    if not any(after):
        return missing
    why = f" ({found.reason})" if found.reason else ""
    return BrowserProblem(
        "not-found", f"{missing}; the nearest element is {after[0]}{why}", candidates=after
    )
