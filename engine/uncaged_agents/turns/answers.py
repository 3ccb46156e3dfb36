"""Answer of a person in place of an agent: JSON, a text with a block of data, or a single value if
the fields leave no doubt about it.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.errors import UsageError
from uncaged_bundles.schemas import expect_fit
from uncaged_models.prompts.extract import Unfit, candidates, checker, extract
from uncaged_models.prompts.fields import mapping, resolved


def read_answer(fields: Mapping[str, object], value: object) -> object:
    """Return a person's answer for a role whose data has the JSON Schema *fields*.

    Raises:
        UsageError: it does not fit.
    """
    if isinstance(value, str):
        return fit_text(value, fields)
    expect_fit(fields, value)
    return value


def fit_text(text: str, fields: Mapping[str, object]) -> object:
    """Return a person's text if it holds data that fits *fields*, else the data that it means.

    Raises:
        UsageError: it is neither.
    """
    check = checker(fields)
    found = extract(text, check)
    if not isinstance(found, Unfit):
        return text
    problem = found.problem
    if not candidates(text) and not text.lstrip().startswith("{"):
        meant = as_data(text.strip(), fields)
        problems = check(meant) if meant is not None else []
        if meant is not None and not problems:
            return meant
        problem = (
            "; ".join(problems)
            or "a text by itself fits no field; give JSON, or a fenced json block"
        )
    raise UsageError(f"the answer does not fit: {problem}")


def as_data(text: str, fields: Mapping[str, object]) -> dict[str, object] | None:
    """Return a lone word as the choice, or a text as the one field that takes any text, if exactly
    one field is possible.
    """
    known = {
        name: resolved(mapping(raw), fields)
        for name, raw in mapping(fields.get("properties")).items()
    }
    choices = [name for name, field in known.items() if text in choices_of(field)]
    texts = [
        name
        for name, field in known.items()
        if field.get("type") == "string" and not choices_of(field)
    ]
    names = choices or texts
    return {names[0]: text} if len(names) == 1 and text else None


def choices_of(field: Mapping[str, object]) -> list[object]:
    """Return the values that a field may have, if they are listed."""
    listed = field.get("enum")
    return (
        list(listed) if isinstance(listed, list) else [field["const"]] if "const" in field else []
    )
