"""Check of a person's answer against what was asked, before it is written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncaged_bundles.errors import UsageError
from uncaged_bundles.schemas import expect_fit

from ..effect_kinds import handler_for


def question(records: Sequence[Mapping[str, object]]) -> Mapping[str, object] | None:
    """Return the last wait of a journal: what it asks, and the JSON Schema of the answer, if it has
    one.

    A role's question has ``fields`` instead: the schema of its data, which may be given as a
    mapping, or as a block in a text.
    """
    return next((record for record in reversed(records) if record.get("control") == "wait"), None)


def check_answer(records: Sequence[Mapping[str, object]], value: object) -> object:
    """Return the answer as it is written down.

    It fits the question's JSON Schema, and the handler of the effect that waits may read it in a
    form of its own.

    Raises:
        UsageError: the answer is null, or does not fit the question; all problems are named.
    """
    if value is None:
        raise UsageError("null is no answer: it could not be told from none; say something else")
    asked = question(records) or {}
    schema = asked.get("schema")
    if isinstance(schema, Mapping):
        expect_fit(schema, value)
    effect = next(
        (
            record["intent"]
            for record in reversed(records)
            if "intent" in record and record.get("seq") == asked.get("seq")
        ),
        None,
    )
    if not isinstance(effect, Mapping) or len(effect) != 1:
        return value
    [kind] = effect
    return handler_for(str(kind)).read_answer(asked, value)
