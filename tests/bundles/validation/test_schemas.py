from __future__ import annotations

import pytest
from uncaged_bundles.shapes import ShapeError
from uncaged_bundles.validation.schemas import check_schema

GOOD: list[dict[str, object]] = [
    {},
    {"type": "object", "properties": {"status": {"enum": ["a"]}}, "required": ["status"]},
    {"$defs": {"one": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/one"}}},
    {"properties": {"$ref": {"type": "string"}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"},
    {"$schema": "https://nobody.example/schema"},
]


@pytest.mark.parametrize("schema", GOOD)
def test_valid_schemas_pass(schema: dict[str, object]) -> None:
    """2020-12 unless the schema names another known draft; references stay inside."""
    check_schema(schema, ("roles",))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "objekt"}, r"^roles\.type: is not valid JSON Schema: 'objekt'"),
        ({"properties": {"a": {"minimum": "1"}}}, r"^roles\.properties\.a\.minimum: is not valid"),
        ({"required": "a"}, r"^roles\.required: is not valid"),
        (
            {"$ref": "https://nobody.example/schema"},
            r"^roles\.\$ref: refers to 'https://nobody.example/schema'",
        ),
        ({"allOf": [{"$ref": "other.json"}]}, r"^roles\.allOf\[0\]\.\$ref: refers to 'other.json'"),
    ],
)
def test_the_place_of_the_mistake_is_named(schema: dict[str, object], message: str) -> None:
    """Not valid, or not complete in itself: nothing is ever fetched to check an answer."""
    with pytest.raises(ShapeError, match=message):
        check_schema(schema, ("roles",))
