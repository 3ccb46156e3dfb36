"""Schemas of tools as parameters of flows: what is kept, cleaned, left to the server or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from uncaged_dispatcher.mcp.schemas import MAX_PROPERTIES, SchemaRefused, parameters_of


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_a_plain_schema_stays_as_it_is() -> None:
    """Types, limits, required names and definitions without circles are kept."""
    plain = {
        **schema(city={"type": "string"}, when={"$ref": "#/$defs/day"}),
        "required": ["city"],
        "$defs": {"day": {"enum": ["today", "tomorrow"]}},
    }
    assert parameters_of(plain) == plain


def test_a_regular_expression_of_a_stranger_is_never_run() -> None:
    """Patterns, formats and marks of this engine are dropped, at any depth."""
    evil = {"type": "string", "pattern": "(a+)+$", "format": "path", "pathMustExist": True}
    found = parameters_of(schema(a={**evil, "forPeople": True}, b={"type": "array", "items": evil}))
    assert found["properties"] == {
        "a": {"type": "string"},
        "b": {"type": "array", "items": {"type": "string"}},
    }


def test_hidden_text_is_cleaned() -> None:
    """Descriptions lose control characters and marks, and are cut; such data is dropped."""
    part = {
        "description": "a\u202eb\x1b[2J\n" + "c" * 900,
        "enum": ["x\u2066"],
        "default": "\ud800",
    }
    found = parameters_of(schema(n=part))["properties"]["n"]
    assert found.keys() == {"description"}
    assert found["description"].startswith("ab c") and len(found["description"]) <= 300


@pytest.mark.parametrize(
    "part",
    [
        {"$ref": "#/$defs/loop", "description": "d"},
        {"$ref": "https://example.com/schema.json", "description": "d"},
        {"$ref": "#", "description": "d"},
        {"type": 7, "description": "d"},
        {"anyOf": [], "description": "d"},
    ],
)
def test_a_property_that_cannot_be_checked_takes_any_value(part: dict[str, Any]) -> None:
    """References in a circle or to other documents, and invalid parts, are left to the server."""
    loop = {"$defs": {"loop": {"$ref": "#/$defs/loop"}}}
    found = parameters_of({**schema(bad=part, good={"type": "integer"}), **loop})
    assert found["properties"] == {"bad": {"description": "d"}, "good": {"type": "integer"}}
    assert "$ref" not in json.dumps(found["properties"])


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        {"type": "array"},
        schema(**{f"p{n}": {} for n in range(MAX_PROPERTIES + 1)}),
        schema(**{"x) | rm $(y": {}}),
        schema(**{"a\u202eb": {}}),
        schema(a={"description": "x" * 40_000}),
        {"type": "object", "properties": {"a": json.loads("[" * 200 + "]" * 200)}},
    ],
)
def test_a_schema_that_is_none_is_refused(bad: Any) -> None:
    """No object, too many or strange names, too large or too deep."""
    with pytest.raises(SchemaRefused):
        parameters_of(bad)
