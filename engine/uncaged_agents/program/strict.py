"""Strict schemas: the subset of JSON Schema that services accept. Any other schema is described in the prompt alone."""

from __future__ import annotations

from collections.abc import Mapping

PLAIN = frozenset({"type", "description", "title", "enum", "const", "items", "properties", "required", "additionalProperties"})


def is_strict(schema: object) -> bool:
    """Return whether each object is closed and requires all of its properties, by plain keywords alone."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return False
    return _is_plain(schema)


def _is_plain(schema: object) -> bool:
    if not isinstance(schema, Mapping) or not set(schema) <= PLAIN or not isinstance(schema.get("type"), str):
        return False
    if schema["type"] == "object":
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, Mapping) or not isinstance(required, list) or schema.get("additionalProperties") is not False:
            return False
        return set(required) == set(properties) and all(_is_plain(inner) for inner in properties.values())
    return _is_plain(schema.get("items")) if schema["type"] == "array" else True
