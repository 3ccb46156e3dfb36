"""The ask effect waits for a person: the thread is put away until somebody says ``answer``.

``{"ask": {"question": text, "schema": JSON Schema?, "choices": [text, …]?}}`` answers with what the
person said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from uncaged_bundles import shapes
from uncaged_bundles.limits import AskLimits
from uncaged_bundles.records import dataclass
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Wait


def choices(value: object, path: shapes.Path) -> list[object] | None:
    """Return a list of what may be answered, which is not empty."""
    if value is not None and not shapes.items(value, path):
        raise shapes.ShapeError(path, "is empty; name what may be answered, or leave it out")
    return None if value is None else shapes.items(value, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBody:
    question: str
    schema: Mapping[str, object] | None = None
    choices: Annotated[Sequence[object] | None, choices] = None


class AskHandler(Handler):
    kind = "ask"
    limits = AskLimits
    recovery: Rule = "repeat"  # to ask a person twice does no harm

    def outcome_schema(self, body: object) -> Mapping[str, object]:
        asked = read_body("ask", AskBody, body)
        return {} if isinstance(asked, Failure) else schema_of(asked) or {}

    def perform(self, body: object, context: EffectContext) -> Outcome:
        asked = read_body("ask", AskBody, body)
        if isinstance(asked, Failure):
            return asked
        if context.answer is not None:
            return Answer(fields={"outcome": context.answer})
        schema = schema_of(asked)
        return Wait(
            details={"question": asked.question, **({} if schema is None else {"schema": schema})}
        )


def schema_of(asked: AskBody) -> Mapping[str, object] | None:
    """Return the JSON Schema of an answer: the body's own, else one of its choices."""
    if asked.schema is not None or asked.choices is None:
        return asked.schema
    return {"enum": asked.choices}
