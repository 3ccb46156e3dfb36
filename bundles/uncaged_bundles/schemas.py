"""Validation of values by JSON Schema, with problems as sentences."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import UsageError


def misfits(schema: Mapping[str, object], value: object, what: str) -> list[str]:
    """Return the problems of *value*, which is called *what*, by the schema."""
    from jsonschema import Draft202012Validator  # 50 ms, which few flows pay

    found = Draft202012Validator(dict(schema)).iter_errors(value)
    return [
        f"{'.'.join(map(str, error.absolute_path)) or what}: {error.message}" for error in found
    ]


def expect_fit(schema: Mapping[str, object], value: object) -> None:
    """Refuse a person's answer that does not match the schema of the question.

    Raises:
        UsageError: with all problems.
    """
    problems = misfits(schema, value, "answer")
    if problems:
        raise UsageError(f"the answer does not fit: {'; '.join(problems)}")
