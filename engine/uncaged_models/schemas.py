"""A JSON Schema is handed to a model's endpoint only if forcing an answer into it cannot lose anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEPT = frozenset({"type", "properties", "required", "items", "enum", "const", "description", "title", "additionalProperties"})
PLAIN = frozenset({"string", "number", "integer", "boolean", "null"})


def closed(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema with every object closed, as endpoints want it; None when it says more than endpoints understand.

    An object without named properties could only be empty there, and a keyword that is left out would not be kept.
    """
    if not set(schema) <= KEPT:
        return None
    words = {key: schema[key] for key in ("type", "enum", "const", "description", "title") if key in schema}
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties")
        if not properties or schema.get("additionalProperties") not in (None, False):
            return None
        inner = {name: closed(value) if isinstance(value, Mapping) else None for name, value in properties.items()}
        if any(value is None for value in inner.values()):
            return None
        return {**words, "properties": inner, "required": list(schema.get("required", [])), "additionalProperties": False}
    if kind == "array":
        item = closed(schema["items"]) if isinstance(schema.get("items"), Mapping) else None
        return None if item is None else {**words, "items": item}
    return words if kind in PLAIN or "enum" in schema or "const" in schema else None
