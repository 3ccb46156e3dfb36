"""An effect of another distribution: ``{"shout": {"text": "hello"}}`` comes back in capitals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from uncaged_bundles import shapes
from uncaged_bundles.limits import Limits
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ShoutLimits(Limits):
    meaning = "shout"
    max_characters: Annotated[int | None, shapes.whole, "maxCharacters"] = None


class ShoutHandler(Handler):
    kind = "shout"
    recovery: Rule = "repeat"
    limits = ShoutLimits

    def perform(self, body: object, context: EffectContext) -> Outcome:
        text = body.get("text") if isinstance(body, dict) else None
        if not isinstance(text, str):
            return Failure.of("effect", "shout: it takes a text")
        most = ShoutLimits.of(context.bundle.descriptor.policy.limits["shout"]).max_characters
        if most is not None and len(text) > most:
            return Failure.of(
                "refused", f"shout: the policy allows {most} characters, not {len(text)}"
            )
        return Answer(fields={"outcome": text.upper()})
