"""Schemas in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from uncaged_models.prompts.fields import describe_fields


def test_fields_are_listed_with_type_need_and_description() -> None:
    """Names as they must be written, bounds in words, objects in lists one level deeper."""
    schema: dict[str, Any] = {
        "type": "object",
        "description": "A plan.",
        "properties": {
            "status": {"const": "planned"},
            "phases": {
                "type": "array",
                "minItems": 1,
                "description": "in order",
                "items": {"$ref": "#/$defs/Phase"},
            },
            "level": {"enum": ["low", 2, None]},
            "score": {"type": "integer", "minimum": 1, "maximum": 5},
            "note": {"anyOf": [{"type": "string", "minLength": 3}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 1}},
            "names": {"type": "array", "maxItems": 3, "items": {"type": "string"}},
            "extra": {"type": ["string", "null"]},
            "any": {},
        },
        "required": ["status", "phases"],
        "additionalProperties": False,
        "$defs": {
            "Phase": {
                "type": "object",
                "properties": {"name": {"type": "string", "description": "short"}},
                "required": ["name"],
            }
        },
    }
    assert describe_fields(schema).splitlines() == [
        '- `status` (always "planned")',
        "- `phases` (list of object, not empty): in order",
        "  - `name` (text): short",
        '- `level` (one of "low", 2, null, optional)',
        "- `score` (whole number, at least 1, at most 5, optional)",
        "- `note` (text, at least 3 characters or null, optional)",
        "- `tags` (list of (text, not empty), optional)",
        "- `names` (list of text, at most 3 items, optional)",
        "- `extra` (text or null, optional)",
        "- `any` (any value, optional)",
    ]


def test_alternative_forms_are_numbered() -> None:
    """An answer takes one of them, and each has its own fields."""
    schema = {
        "oneOf": [
            {
                "description": "All is well.",
                "properties": {"status": {"const": "approved"}},
                "required": ["status"],
            },
            {
                "properties": {"status": {"const": "rejected"}, "issues": {"type": "array"}},
                "required": ["status", "issues"],
            },
        ]
    }
    assert describe_fields(schema).splitlines() == [
        "- one of these 2 forms:",
        "  - form 1: All is well.",
        '    - `status` (always "approved")',
        "  - form 2",
        '    - `status` (always "rejected")',
        "    - `issues` (list)",
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"not": {"const": 1}}}},
        {"allOf": [{"required": ["a"]}]},
        {"properties": {"a": {"items": {"patternProperties": {"x": {}}}}}},
        {"additionalProperties": {"type": "string"}},
        {"$defs": {"x": {"if": {}}}, "properties": {"a": {"$ref": "#/$defs/x"}}},
    ],
)
def test_a_schema_beyond_words_is_quoted(schema: dict[str, Any]) -> None:
    """An agent must not miss a rule because we had no words for it."""
    assert json.dumps(schema, separators=(",", ":")) in describe_fields(schema)


def test_what_words_cover_is_not_repeated() -> None:
    """The schema itself would cost as many characters again."""
    assert "Schema" not in describe_fields(
        {"properties": {"a": {"type": "string", "minLength": 1}}}
    )


def test_a_schema_that_refers_to_itself_has_an_end() -> None:
    """A tree of phases is described to a certain depth."""
    schema = {
        "$defs": {"n": {"properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}},
        "$ref": "#/$defs/n",
    }
    assert describe_fields(schema).endswith("- …")
    nested = {
        "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
        "properties": {"a": {"$ref": "#/$defs/n"}},
    }
    assert "list of list of" in describe_fields(nested)


@pytest.mark.slow
def test_a_schema_that_unfolds_without_end_is_cut() -> None:
    """A few lines of references may unfold to millions of fields; the prompt stays small and holds
    the schema itself.
    """
    names = [f"n{number}" for number in range(40)]
    schema: dict[str, Any] = {
        "$defs": {"n": {"properties": {name: {"$ref": "#/$defs/n"} for name in names}}},
        "$ref": "#/$defs/n",
    }
    schema["$defs"]["n"]["anyOf"] = [{"$ref": "#/$defs/n"} for _ in names]
    lines = describe_fields(schema).splitlines()
    assert len(lines) == 202
    assert lines[-1].startswith("The whole JSON Schema: ")


def test_a_schema_without_fields_says_so() -> None:
    """An empty list would read like a mistake."""
    assert describe_fields({"type": "object"}) == "(no field is prescribed)"
