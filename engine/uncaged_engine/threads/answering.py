"""Validation of a person's answer against the question, before the answer is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncaged_bundles.errors import UsageError
from uncaged_bundles.schemas import expect_fit

from ..effect_kinds import handler_for


def question(records: Sequence[Mapping[str, object]]) -> Mapping[str, object] | None:
    """Return the last ``wait`` record of a journal: the question, and the JSON Schema of the answer
    if there is one.

    A role's question has ``fields`` instead: the schema of its data, which the answer holds as a
    mapping, or as a block in a text.
    """
    return next((record for record in reversed(records) if record.get("control") == "wait"), None)


def question_number(records: Sequence[Mapping[str, object]]) -> int:
    """Return the number of the last question's record, from 1; 0 if nothing was asked."""
    return next(
        (at for at in range(len(records), 0, -1) if records[at - 1].get("control") == "wait"), 0
    )


def check_answer(records: Sequence[Mapping[str, object]], value: object) -> object:
    """Return the answer in the form in which the journal records it.

    The answer is validated against the question's JSON Schema; the handler of the waiting effect
    may convert it.

    Raises:
        UsageError: the answer is null, or does not match the schema; all problems are named.
    """
    if value is None:
        raise UsageError(
            "null cannot be an answer: it means that there is none; give another value"
        )
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
