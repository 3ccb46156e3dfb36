"""The effect `now`: the time, which a replay repeats. ``{"now": {}}`` answers milliseconds since
1970, UTC.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.limits import NowLimits
from uncaged_bundles.records import dataclass
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class NowBody:
    """Body of a ``now`` effect: no keys."""


class NowHandler(Handler):
    kind = "now"
    limits = NowLimits
    answers: Mapping[str, object] = {"type": "integer"}
    recovery: Rule = "repeat"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("now", NowBody, {} if body is None else body)
        return (
            options
            if isinstance(options, Failure)
            else Answer(fields={"outcome": context.clock_ms()})
        )
