"""A flow that starts another finds the same child again after a crash, instead of starting a second
one.

``{"flow": {"name": text, "prompt": text?, "params": {...}?}}`` answers
``{"threadId", "hash", "success", "message", "data"}``. Its id is derived from the parent's and the
step, so its journal is the record of whether it was started. Kill reaches children, and a parent
that goes on after that takes its child up again. A child draws on what is left of its parent's
limits: reaching one stops both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from uncaged_bundles import shapes
from uncaged_bundles.errors import EnvironmentLacks, NotFoundError, StorageError, UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.limits import FlowLimits
from uncaged_bundles.records import dataclass, field
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.children import DEEPEST, depth_of, derived_id
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Failure, Outcome

ANSWER = {
    "type": "object",
    "required": ["success", "message", "data"],
    "properties": {"success": {"type": "boolean"}, "message": {"type": ["string", "null"]}},
}
"""JSON Schema of an outcome."""


def rounds(value: object, path: shapes.Path) -> int | None:
    """Return a limit of rounds; None takes the config's."""
    if value is not None:
        shapes.not_negative(value, path)
        return shapes.whole(value, path)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowBody:
    name: str
    prompt: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    max_rounds: Annotated[int | None, "maxRounds", rounds] = None


class FlowHandler(Handler):
    kind = "flow"
    answers: Mapping[str, object] = ANSWER
    recovery: Rule = (
        "repeat"  # the child is found by its id; for one that was removed the rule is `ask`
    )
    limits = FlowLimits

    def child(self, key: str, intended_ms: int) -> ThreadId | None:
        return derived_id(key, intended_ms)

    def perform(self, body: object, context: EffectContext) -> Outcome:
        asked = read_body("flow", FlowBody, body)
        if isinstance(asked, Failure):
            return asked
        if (refusal := find_refusal(asked, context)) is not None:
            return refusal
        # the library for clients, of which the other effects need nothing
        from uncaged_engine.services import children

        engine = children.Engine(context.store)
        child = children.child_id(context)
        try:
            if context.store.journal_of(child) is None:
                children.begin(
                    engine,
                    child,
                    context,
                    flow=asked.name,
                    prompt=asked.prompt,
                    params=asked.params,
                    max_rounds=asked.max_rounds,
                )
        except StorageError as exc:
            # also of the child's journal: the same child is started when there is space
            raise EnvironmentLacks(f"{asked.name}: {exc}") from exc
        except UncagedError as exc:
            return Failure.of("flow", f"{asked.name}: {exc}")
        # crash here: the child runs; asked again, we find it
        try:
            with context.cancel.on_request(lambda: children.stop(engine, child)):
                return children.result_of(engine, child, context)
        except NotFoundError:
            return Failure.of(
                "flow",
                f"{asked.name}: its thread {child} was removed before it had ended",
                threadId=child,
            )


def find_refusal(asked: FlowBody, context: EffectContext) -> Failure | None:
    names = FlowLimits.of(context.bundle.descriptor.policy.limits.get("flow", {})).names
    if names is not None and asked.name not in names:
        return Failure.of(
            "policy",
            f'flow: {asked.name!r} is not among the flows that the policy names; add it to "flow": {{"names": [...]}}',
        )
    if depth_of(context.start) >= DEEPEST:
        return Failure.of("flow", f"flow: threads start one another {DEEPEST} levels deep at most")
    return None
