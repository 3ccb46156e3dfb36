"""The effect `ask`: a question to a person. The thread waits, without a process, for ``answer``.

``{"ask": {"question": text, "schema": JSON Schema?, "choices": [text, …]?}}`` answers with the
person's answer. A body has one of schema and choices at most.
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
    """Return the possible answers; an empty list is refused."""
    if value is not None and not shapes.items(value, path):
        raise shapes.ShapeError(path, "is empty; name the possible answers, or leave it out")
    return None if value is None else shapes.items(value, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBody:
    question: str
    schema: Mapping[str, object] | None = None
    choices: Annotated[Sequence[object] | None, choices] = None


class AskHandler(Handler):
    kind = "ask"
    limits = AskLimits
    recovery: Rule = "repeat"  # asking a person twice does no harm

    def outcome_schema(self, body: object) -> Mapping[str, object]:
        options = read_body("ask", AskBody, body)
        return {} if isinstance(options, Failure) else schema_of(options) or {}

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("ask", AskBody, body)
        if isinstance(options, Failure):
            return options
        if context.answer is not None:
            return Answer(fields={"outcome": context.answer})
        if options.schema is not None and options.choices is not None:
            return Failure.of("effect", "ask: give choices or a schema, not both")
        schema = schema_of(options)
        return Wait(
            details={"question": options.question, **({} if schema is None else {"schema": schema})}
        )


def schema_of(options: AskBody) -> Mapping[str, object] | None:
    """Return the JSON Schema of an answer: the body's own, else one of its choices."""
    if options.schema is not None or options.choices is None:
        return options.schema
    return {"enum": options.choices}
