"""The now effect tells the time once; a replay hears the same time again. ``{"now": {}}`` answers milliseconds since 1970, UTC."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.limits import NowLimits
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome


class NowHandler(Handler):
    kind = "now"
    limits = NowLimits
    answers: Mapping[str, object] = {"type": "integer"}
    recovery: Rule = "repeat"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        if body not in ({}, None):
            return Failure.of("effect", "now: its body must be an empty mapping")
        return Answer(fields={"outcome": context.clock_ms()})
