"""A person's answer is checked against what was asked before it is written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncaged_bundles.errors import UsageError


def question(records: Sequence[Mapping[str, object]]) -> Mapping[str, object] | None:
    """The last wait of a journal: what it asks, and the JSON Schema of the answer, if it has one.

    A role's question has ``fields`` instead: the schema of its data, which may be given as a mapping, or as a block in a text.
    """
    return next((record for record in reversed(records) if record.get("control") == "wait"), None)


def check_answer(records: Sequence[Mapping[str, object]], value: object) -> None:
    """Raises: UsageError: the answer is null, or does not fit the schema of the question; all problems are named."""
    if value is None:
        raise UsageError("null is no answer: it could not be told from none; say something else")
    asked = question(records) or {}
    schema = asked.get("fields") if isinstance(value, Mapping) and "fields" in asked else asked.get("schema")
    if not isinstance(schema, Mapping):
        return
    from jsonschema import Draft202012Validator

    problems = [
        f"{'.'.join(map(str, one.absolute_path)) or 'answer'}: {one.message}"
        for one in Draft202012Validator(dict(schema)).iter_errors(value)
    ]
    if problems:
        raise UsageError(f"the answer does not fit: {'; '.join(problems)}")
