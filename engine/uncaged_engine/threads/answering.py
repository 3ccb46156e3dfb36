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
    problems = misfits(schema, value, "answer") if isinstance(schema, Mapping) else []
    if problems:
        raise UsageError(f"the answer does not fit: {'; '.join(problems)}")


def misfits(schema: Mapping[str, object], value: object, what: str) -> list[str]:
    """Return in words where *value*, which is called *what*, does not fit the schema."""
    from jsonschema import Draft202012Validator  # 50 ms, which few flows pay

    found = Draft202012Validator(dict(schema)).iter_errors(value)
    return [f"{'.'.join(map(str, one.absolute_path)) or what}: {one.message}" for one in found]
