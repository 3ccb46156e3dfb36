"""The ask effect waits for a person: the thread is put away until somebody says ``answer``.

``{"ask": {"question": text, "schema": JSON Schema?, "choices": [text, …]?}}`` answers with what the person said.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.limits import AskLimits
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Wait

KEYS = frozenset({"question", "schema", "choices"})


class AskHandler(Handler):
    kind = "ask"
    limits = AskLimits
    recovery: Rule = "repeat"  # to ask a person twice does no harm

    def outcome_schema(self, body: object) -> Mapping[str, object]:
        asked = body if isinstance(body, Mapping) else {}
        schema = asked.get("schema") or ({"enum": asked["choices"]} if asked.get("choices") else {})
        return schema if isinstance(schema, Mapping) else {}

    def perform(self, body: object, context: EffectContext) -> Outcome:
        if not isinstance(body, Mapping) or not isinstance(body.get("question"), str) or not set(body) <= KEYS:
            return Failure.of("effect", 'ask: its body is {"question": text}, perhaps with "schema" or "choices"')
        choices, schema = body.get("choices"), body.get("schema")
        if choices is not None and (not isinstance(choices, list) or not choices):
            return Failure.of("effect", f"ask: choices is a list of what may be answered, not {choices!r}")
        if schema is not None and not isinstance(schema, Mapping):
            return Failure.of("effect", f"ask: schema is a JSON Schema, not {schema!r}")
        if context.answer is not None:
            return Answer(fields={"outcome": context.answer})
        details: dict[str, object] = {"question": body["question"]}
        if choices is not None:
            details["schema"] = {"enum": choices}
        if schema is not None:
            details["schema"] = schema
        return Wait(details=details)
