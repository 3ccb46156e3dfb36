"""A person's answer is checked against what was asked before it is written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncaged_bundles.errors import UsageError


def question(records: Sequence[Mapping[str, object]]) -> Mapping[str, object] | None:
    """The last wait of a journal: what it asks, and the JSON Schema of the answer, if it has one.

    A role's question has ``fields`` instead: the schema of its data, which may be given as a mapping, or as a block in a text.
    """
    return next((record for record in reversed(records) if record.get("control") == "wait"), None)


def check_answer(records: Sequence[Mapping[str, object]], value: object) -> object:
    """Return the answer as it is written down.

    For a role's question a text is taken whole if it holds data that fits; else it is the value of the one field that it can be.

    Raises:
        UsageError: the answer is null, or does not fit the question; all problems are named.
    """
    if value is None:
        raise UsageError("null is no answer: it could not be told from none; say something else")
    asked = question(records) or {}
    fields = asked.get("fields")
    if isinstance(fields, Mapping):
        return fitted(value, fields) if isinstance(value, str) else _expect_fit(fields, value)
    schema = asked.get("schema")
    return _expect_fit(schema, value) if isinstance(schema, Mapping) else value


def fitted(text: str, fields: Mapping[str, object]) -> object:
    """Return a person's text if it holds data that fits *fields*, else the data that it stands for.

    Raises:
        UsageError: it is neither.
    """
    from uncaged_models.prompts.extract import Unfit, candidates, checker, extract

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
        problem = "; ".join(problems) or "a text by itself fits no field; give JSON, or a fenced json block"
    raise UsageError(f"the answer does not fit: {problem}")


def as_data(text: str, fields: Mapping[str, object]) -> dict[str, object] | None:
    """Return a lone word as the choice, or a text as the one field that takes any, if there is exactly one such field."""
    from uncaged_models.prompts.fields import mapping, resolved

    known = {name: resolved(mapping(raw), fields) for name, raw in mapping(fields.get("properties")).items()}
    choices = [name for name, field in known.items() if text in choices_of(field)]
    texts = [name for name, field in known.items() if field.get("type") == "string" and not choices_of(field)]
    names = choices or texts
    return {names[0]: text} if len(names) == 1 and text else None


def choices_of(field: Mapping[str, object]) -> list[object]:
    """Return the values that a field may have, if they are listed."""
    listed = field.get("enum")
    return list(listed) if isinstance(listed, list) else [field["const"]] if "const" in field else []


def _expect_fit(schema: Mapping[str, object], value: object) -> object:
    problems = misfits(schema, value, "answer")
    if problems:
        raise UsageError(f"the answer does not fit: {'; '.join(problems)}")
    return value


def misfits(schema: Mapping[str, object], value: object, what: str) -> list[str]:
    """Return in words where *value*, which is called *what*, does not fit the schema."""
    from jsonschema import Draft202012Validator  # 50 ms, which few flows pay

    found = Draft202012Validator(dict(schema)).iter_errors(value)
    return [f"{'.'.join(map(str, one.absolute_path)) or what}: {one.message}" for one in found]
