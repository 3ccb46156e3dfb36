"""The effect `flow`: a child thread of another flow.

``{"flow": {"name": text, "prompt": text?, "params": {...}?}}`` answers
``{"threadId", "hash", "success", "message", "data"}``. The child's id is derived from the parent's
and the step, so that after a crash the same child is found instead of a second one started. Kill
reaches children, and a resumed parent resumes its child. A child uses up its parent's limits:
reaching one stops both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from uncaged_bundles import shapes
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.limits import FlowLimits
from uncaged_bundles.records import dataclass, field
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.children import DEEPEST, depth_of, derived_id
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Failure, Outcome
from uncaged_engine.door.past import PastEffect

ANSWER = {
    "type": "object",
    "required": ["success", "message", "data"],
    "properties": {"success": {"type": "boolean"}, "message": {"type": ["string", "null"]}},
}
"""JSON Schema of an outcome."""


def rounds(value: object, path: shapes.Path) -> int | None:
    """Return a limit of rounds; None means the config's."""
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
    only_waits = True
    limits = FlowLimits
    decided_limits = frozenset({"names"})

    def child(self, key: str, intended_ms: int) -> ThreadId | None:
        return derived_id(key, intended_ms)

    def past_refusal(self, past: PastEffect) -> str | None:
        options = read_body("flow", FlowBody, past.body)
        return None if isinstance(options, Failure) else unnamed(options, past.limits)

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("flow", FlowBody, body)
        if isinstance(options, Failure):
            return options
        if (refusal := find_refusal(options, context)) is not None:
            return refusal
        if context.thread.run_child is not None:
            return context.thread.run_child(
                context,
                flow=options.name,
                prompt=options.prompt,
                params=options.params,
                max_rounds=options.max_rounds,
            )
        # the client library, which other effects do not need
        from uncaged_engine.services import children

        return children.run_to_end(
            children.Engine(context.store),
            context,
            flow=options.name,
            prompt=options.prompt,
            params=options.params,
            max_rounds=options.max_rounds,
        )


def unnamed(options: FlowBody, policy: Mapping[str, object]) -> str | None:
    """Return the refusal of a flow that the policy does not name; None if it does."""
    names = FlowLimits.of(policy).names
    if names is None or options.name in names:
        return None
    return f'flow: {options.name!r} is not among the flows that the policy names; add it to "flow": {{"names": [...]}}'


def find_refusal(options: FlowBody, context: EffectContext) -> Failure | None:
    refused = unnamed(options, context.bundle.descriptor.policy.limits.get("flow", {}))
    if refused is not None:
        return Failure.of("policy", refused)
    if depth_of(context.start) >= DEEPEST:
        return Failure.of("flow", f"flow: threads start one another {DEEPEST} levels deep at most")
    return None
