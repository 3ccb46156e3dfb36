"""Strict form of JSON Schemas for endpoints that force answers into a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEPT = frozenset(
    {
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "const",
        "description",
        "title",
        "additionalProperties",
    }
)
PLAIN = frozenset({"string", "number", "integer", "boolean", "null"})


def closed(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema with every object closed, as endpoints require; None if that or an
    unsupported keyword would lose something.

    An object without named properties could only be empty there, and an omitted keyword would not
    be enforced.
    """
    if not set(schema) <= KEPT:
        return None
    words = {
        key: schema[key]
        for key in ("type", "enum", "const", "description", "title")
        if key in schema
    }
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties")
        if not properties or schema.get("additionalProperties") not in (None, False):
            return None
        inner = {
            name: closed(value) if isinstance(value, Mapping) else None
            for name, value in properties.items()
        }
        if any(value is None for value in inner.values()):
            return None
        return {
            **words,
            "properties": inner,
            "required": list(schema.get("required", [])),
            "additionalProperties": False,
        }
    if kind == "array":
        item = closed(schema["items"]) if isinstance(schema.get("items"), Mapping) else None
        return None if item is None else {**words, "items": item}
    return words if kind in PLAIN or "enum" in schema or "const" in schema else None
