"""The now effect tells the time once; a replay hears the same time again. ``{"now": {}}`` answers milliseconds since 1970, UTC."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.effects import EffectContext, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome


class NowHandler:
    kind = "now"
    limits: frozenset[str] = frozenset()

    def outcome_schema(self, _body: object) -> Mapping[str, object]:
        return {"type": "integer"}

    def rule(self, body: object, bundle: Bundle) -> Rule:  # noqa: ARG002 - the protocol's signature
        return "repeat"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        if body not in ({}, None):
            return Failure.of("effect", "now: its body must be an empty mapping")
        return Answer(fields={"outcome": context.clock_ms()})

    def probe(self, body: object, context: EffectContext) -> Outcome | None:  # noqa: ARG002 - the protocol's signature
        return None
