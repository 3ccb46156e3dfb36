"""The ask effect waits for a person: the thread is put away until somebody says ``answer``.

``{"ask": {"question": text, "schema": JSON Schema?, "choices": [text, …]?}}`` answers with what the person said.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.validation.validate import Bundle

from ..effects import EffectContext, Rule
from ..outcomes import Answer, Failure, Outcome, Wait

KEYS = frozenset({"question", "schema", "choices"})


class AskHandler:
    kind = "ask"
    limits: frozenset[str] = frozenset()

    def rule(self, body: object, bundle: Bundle) -> Rule:  # noqa: ARG002 - the protocol's signature
        return "repeat"  # to ask a person twice does no harm

    def perform(self, body: object, context: EffectContext) -> Outcome:
        if not isinstance(body, Mapping) or not isinstance(body.get("question"), str) or not set(body) <= KEYS:
            return Failure.of("effect", 'ask: its body is {"question": text}, perhaps with "schema" or "choices"')
        if context.answer is not None:
            return Answer(fields={"outcome": context.answer})
        details: dict[str, object] = {"question": body["question"]}
        if isinstance(body.get("choices"), list):
            details["schema"] = {"enum": body["choices"]}
        if isinstance(body.get("schema"), Mapping):
            details["schema"] = body["schema"]
        return Wait(details=details)

    def probe(self, body: object, context: EffectContext) -> Outcome | None:  # noqa: ARG002 - the protocol's signature
        return None
