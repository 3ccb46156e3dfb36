"""The effect `all`: several effects at once, each a sub-step with a line of its own in the journal.

``{"all": {"effects": [effect, …], "limit": 8, "onFailure": "wait" | "stop"}}`` answers with a list
in their order: ``{"outcome": value}`` or ``{"error": {...}}`` for each. With ``stop`` no further
effect is begun after the first failure (those get an error of kind ``not-begun``). After a crash
only sub-steps without a line are performed again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Annotated, Literal

from uncaged_bundles import shapes
from uncaged_bundles.limits import AllLimits
from uncaged_bundles.records import dataclass
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule, handled
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void, Wait
from uncaged_engine.services.registry import handler_for

NOT_BEGUN: Mapping[str, object] = {
    "kind": "not-begun",
    "message": "an effect beside it failed first",
}
MOST_AT_ONCE = 64
MOST_EFFECTS = 10_000
RESULT: Mapping[str, object] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "properties": {"outcome": {}, "error": {"type": "object", "required": ["kind", "message"]}},
    "additionalProperties": False,
}
"""JSON Schema of one effect's result."""
NEVER_INSIDE = frozenset({"role", "ask", "all", "output"})
"""Kinds that cannot be inside: a role counts as a round and may own the worktree, a person is asked
one question at a time, and one level is enough.
"""


def effects_inside(value: object, path: shapes.Path) -> list[tuple[str, object]]:
    """Return the effects of a list as pairs of kind and body."""
    effects = shapes.items(value, path)
    if len(effects) > MOST_EFFECTS:
        raise shapes.ShapeError(path, f"{MOST_EFFECTS:,} effects are the most")
    pairs: list[tuple[str, object]] = []
    for index, effect in enumerate(effects):
        if not isinstance(effect, Mapping) or len(effect) != 1:
            raise shapes.ShapeError(
                (*path, index), "must be a mapping with exactly one key, its kind"
            )
        [(kind, inner)] = effect.items()
        if kind in NEVER_INSIDE:
            raise shapes.ShapeError((*path, index), f"{kind} cannot be inside all")
        pairs.append((str(kind), inner))
    return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class AllBody:
    effects: Annotated[Sequence[tuple[str, object]], effects_inside]
    limit: Annotated[int, shapes.whole_between(1, MOST_AT_ONCE)] = 8
    on_failure: Annotated[Literal["wait", "stop"], shapes.one_of("wait", "stop"), "onFailure"] = (
        "wait"
    )


class AllHandler(Handler):
    kind = "all"
    limits = AllLimits
    is_composite = True

    def outcome_schema(self, body: object) -> Mapping[str, object]:
        options = read_body("all", AllBody, body)
        count = (
            {}
            if isinstance(options, Failure)
            else {"minItems": len(options.effects), "maxItems": len(options.effects)}
        )
        return {"type": "array", "items": RESULT, **count}

    def rule(self, body: object, bundle: Bundle) -> Rule:
        """Return ``ask`` if an effect inside has that rule. One that the policy does not allow is
        never performed.
        """
        options = read_body("all", AllBody, body)
        if isinstance(options, Failure):
            return "repeat"
        allowed = bundle.descriptor.policy.limits
        rules = {
            handler_for(kind).rule(handled(inner), bundle)
            for kind, inner in options.effects
            if kind in allowed
        }
        return "ask" if "ask" in rules else "repeat"

    def parts(self, body: object) -> Sequence[tuple[str, object]]:
        options = read_body("all", AllBody, body)
        return () if isinstance(options, Failure) else options.effects

    def difference(
        self, body: object, outcome: object, lines: Sequence[Mapping[str, object]]
    ) -> str | None:
        return difference(body, outcome, lines)

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("all", AllBody, body)
        if isinstance(options, Failure):
            return options
        return ConcurrentEffects(
            options.effects, context, stop_early=options.on_failure == "stop"
        ).perform(options.limit)


def difference(body: object, results: object, lines: Sequence[Mapping[str, object]]) -> str | None:
    options = read_body("all", AllBody, body)
    if isinstance(options, Failure):
        return f"it has an outcome, and could not be performed: {options.error['message']}"
    effects = options.effects
    if (
        not isinstance(results, list)
        or len(results) != len(effects)
        or not all(isinstance(result, Mapping) for result in results)
    ):
        return f"it has {len(effects)} parts, and its outcome is {_shown(results)}"
    seen: set[int] = set()
    for line in lines:
        index = line["sub"]
        if index in seen or not isinstance(index, int) or not 0 <= index < len(effects):
            return f"there is a line of part {index}{', a second one' if index in seen else ''}"
        seen.add(index)
        if result_of(line) != results[index]:
            return f"the line of part {index} holds {_shown(result_of(line))}, the outcome {_shown(results[index])}"
    for index, (kind, _) in enumerate(effects):
        if index not in seen and not lineless(results, options, index, kind):
            return f"the outcome holds {_shown(results[index])} for part {index}, which has no line"
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


class ConcurrentEffects:
    """Performance of several effects by a pool of threads."""

    def __init__(
        self, effects: Sequence[tuple[str, object]], context: EffectContext, *, stop_early: bool
    ) -> None:
        self._effects = effects
        self._context = context
        self._stop_early = stop_early
        self._stopped = threading.Event()
        self._results: dict[int, Mapping[str, object]] = {
            index: result_of(record)
            for index, record in context.done.items()
            if index < len(effects)
        }
        self._void: Void | None = None

    def perform(self, at_once: int) -> Outcome:
        pending = [index for index in range(len(self._effects)) if index not in self._results]
        with ThreadPoolExecutor(
            max_workers=max(1, min(at_once, len(pending), MOST_AT_ONCE))
        ) as pool:
            for future in [pool.submit(self._perform, index) for index in pending]:
                future.result()
        if self._void is not None:
            return self._void
        return Answer(
            fields={"outcome": [self._results[index] for index in range(len(self._effects))]}
        )

    def _perform(self, index: int) -> None:
        kind, body = self._effects[index]
        if self._stopped.is_set() or self._context.cancel.requested:
            if self._context.cancel.requested and self._void is None:
                self._void = Void(
                    word="killed", message="killed before all effects were performed", begun=False
                )
            self._results[index] = {"error": NOT_BEGUN}
            return
        outcome = self._context.perform_sub(index, kind, body)
        match outcome:
            case Answer():
                self._results[index] = result_of(outcome.fields)
            case Failure():
                self._results[index] = {"error": outcome.error}
                if self._stop_early:
                    self._stopped.set()
            case Void():
                # the performer knows which parts had begun
                self._void = replace(outcome, begun=False)
                self._stopped.set()
            case Wait():
                self._results[index] = {"error": waits(kind)}


def waits(kind: str) -> Mapping[str, object]:
    """Return the error of a part that would wait for a person."""
    return {
        "kind": "effect",
        "message": f"{kind} waits for a person, which cannot happen inside all",
    }


def lineless(results: list[Mapping[str, object]], options: AllBody, index: int, kind: str) -> bool:
    """Return whether part *index* may have a result without a line: it would have waited for a
    person, or another failed first.
    """
    error = results[index].get("error")
    failed = any("error" in result and result["error"] != NOT_BEGUN for result in results)
    return error == waits(kind) or (error == NOT_BEGUN and options.on_failure == "stop" and failed)


def result_of(record: Mapping[str, object]) -> Mapping[str, object]:
    return {"error": record["error"]} if "error" in record else {"outcome": record.get("outcome")}
