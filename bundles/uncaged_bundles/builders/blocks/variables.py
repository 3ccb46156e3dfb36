"""Reader for the variables of a start block: their initial values, and JSON Schema of those that a
run may set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.contract import FOR_PEOPLE
from uncaged_bundles.shapes import Path, ShapeError
from uncaged_bundles.values import convert, is_a

TYPES = ("string", "number", "integer", "boolean", "array", "object")
CATEGORIES = ("required", "optional", "hidden", "configuration")
_VARIABLE_KEYS = frozenset(
    {"name", "value", "description", "type", "category", "required", "hidden"}
)


def read_variables(steps: list[Any], path: Path) -> tuple[dict[str, object], dict[str, object]]:
    """Return the variables' initial values, and the JSON Schema of those that a run may set."""
    listed = steps[0]["config"].get("variables") if steps[0]["type"] == "start" else None
    values: dict[str, object] = {}
    properties: dict[str, object] = {}
    required: list[str] = []
    if listed is not None and not isinstance(listed, list):
        raise ShapeError(path, f"must be a list of variables, not {shapes.shown(listed)}")
    for index, item in enumerate(listed or []):
        here = (*path, index)
        fields = shapes.mapping(item, here)
        shapes.known_keys(fields, _VARIABLE_KEYS, here)
        name = shapes.text(fields.get("name") or "", (*here, "name"))
        if not name.strip():
            continue  # AnythingLLM's editor leaves such rows behind
        if name in values:
            raise ShapeError((*here, "name"), f"the variable {name!r} occurs twice; rename one")
        if "\0" in name or name != name.strip():
            raise ShapeError((*here, "name"), f"{shapes.shown(name)} is no name for a variable")
        kind, category = _kind_of(fields, here)
        values[name] = _value(fields.get("value"), kind, (*here, "value"))
        if category == "hidden":
            continue
        if category == "required":
            required.append(name)
            del values[name]
        described = shapes.text(fields.get("description") or "", (*here, "description"))
        schema: dict[str, object] = {
            "type": kind,
            "description": described or f"Value for variable {name}",
        }
        if values.get(name) not in (None, ""):
            schema["default"] = values[name]
        properties[name] = {**schema, FOR_PEOPLE: True} if category == "configuration" else schema
    parameters: dict[str, object] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return values, {**parameters, "required": required} if required else parameters


def declared_variables(steps: list[Any]) -> set[str]:
    """Return the names that a start block declares."""
    listed = steps[0]["config"].get("variables") if steps[0]["type"] == "start" else None
    return {str(row.get("name")) for row in listed or [] if isinstance(row, dict)}


def _kind_of(fields: Mapping[str, object], path: Path) -> tuple[str, str]:
    kind = shapes.one_of(*TYPES)(fields.get("type", "string"), (*path, "type"))
    category = shapes.one_of(*CATEGORIES)(fields.get("category", "optional"), (*path, "category"))
    for word in ("required", "hidden"):
        if shapes.truth(fields.get(word, False), (*path, word)):
            category = word
    return kind, category


def _value(raw: object, kind: str, path: Path) -> object:
    """Return a variable's value in its type; without a value, an empty text, or None for other
    types.
    """
    if raw is None or raw == "":
        return "" if kind == "string" else None
    if kind == "string":
        return raw
    value = convert(raw, kind)
    if not is_a(value, kind):
        raise ShapeError(path, f"{shapes.shown(raw)} is no {kind}")
    return value
