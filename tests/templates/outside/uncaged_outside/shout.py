"""An effect of another distribution: ``{"shout": {"text": "hello"}}`` comes back in capitals."""

from __future__ import annotations

from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome


class ShoutHandler(Handler):
    kind = "shout"
    recovery: Rule = "repeat"
    limits = frozenset({"maxCharacters"})

    def perform(self, body: object, context: EffectContext) -> Outcome:
        text = body.get("text") if isinstance(body, dict) else None
        if not isinstance(text, str):
            return Failure.of("effect", "shout: it takes a text")
        most = context.bundle.descriptor.policy.limits["shout"].get("maxCharacters")
        if isinstance(most, int) and len(text) > most:
            return Failure.of("refused", f"shout: the policy allows {most} characters, not {len(text)}")
        return Answer(fields={"outcome": text.upper()})
