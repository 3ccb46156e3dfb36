"""Conversion between a recipe's parameters and JSON Schema.

A path is text with ``"format": "path"``; ``"pathMustExist": True`` is checked when a thread
starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from uncaged_bundles import shapes
from uncaged_bundles.shapes import Path, ShapeError
from uncaged_bundles.values import convert, is_a, matches

TYPES = ("string", "number", "integer", "boolean", "path", "array", "object")
RULES = frozenset({"pattern", "allowedValues", "pathMustExist"})
KEYS = frozenset(
    {"name", "type", "required", "description", "default", "validation", "valueOptions"}
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,59}")


def write_schema(raw: object, path: Path) -> dict[str, object]:
    """Return the JSON Schema of a list of parameters, or of a mapping from name to parameter.

    Raises:
        ShapeError: a parameter or a rule is not valid; with its dotted path.
    """
    if isinstance(raw, dict):
        raw = [
            {"name": name, **shapes.mapping(value, (*path, name))}
            for name, value in shapes.mapping(raw, path).items()
        ]
    if not isinstance(raw, list):
        raise ShapeError(path, f"must be a list of parameters, not {shapes.shown(raw)}")
    properties: dict[str, object] = {}
    required: list[str] = []
    for index, item in enumerate(raw):
        here = (*path, index)
        fields = shapes.mapping(item, here)
        shapes.known_keys(fields, KEYS, here)
        name = _name(shapes.required(fields, "name", here), properties, (*here, "name"))
        properties[name] = write_property(fields, here)
        if (
            shapes.truth(fields.get("required", False), (*here, "required"))
            and "default" not in fields
        ):
            required.append(name)
    schema: dict[str, object] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return {**schema, "required": required} if required else schema


def write_property(fields: Mapping[str, object], path: Path) -> dict[str, object]:
    """Return the schema of one parameter from the fields of a recipe."""
    kind = shapes.one_of(*TYPES)(fields.get("type", "string"), (*path, "type"))
    rules = shapes.mapping(fields.get("validation") or {}, (*path, "validation"))
    shapes.known_keys(rules, RULES, (*path, "validation"))
    schema: dict[str, object] = {"type": "string" if kind == "path" else kind}
    if kind == "path":
        schema["format"] = "path"
    description = shapes.text(fields.get("description", ""), (*path, "description"))
    if description:
        schema["description"] = description
    if shapes.truth(rules.get("pathMustExist", False), (*path, "validation", "pathMustExist")):
        if kind != "path":
            raise ShapeError(
                (*path, "validation", "pathMustExist"), f"is for paths; this parameter is a {kind}"
            )
        schema["pathMustExist"] = True
    if "pattern" in rules:
        schema["pattern"] = _pattern(rules["pattern"], kind, (*path, "validation", "pattern"))
    allowed = rules.get("allowedValues", fields.get("valueOptions"))
    if allowed is not None:
        schema["enum"] = _allowed(allowed, kind, (*path, "validation", "allowedValues"))
    if fields.get("default") is not None:
        schema["default"] = _default(
            convert(fields["default"], kind), kind, schema, (*path, "default")
        )
    return schema


def _name(value: object, known: Mapping[str, object], path: Path) -> str:
    name = shapes.text(value, path)
    if not _NAME.fullmatch(name):
        raise ShapeError(
            path,
            f"{shapes.shown(name)} is no name; it starts with a letter and has at most 60 letters, digits, '-' and '_'",
        )
    for other in known:
        if other == name:
            raise ShapeError(path, f"the parameter {name!r} occurs twice")
        if other.lower() == name.lower():
            raise ShapeError(
                path,
                f"{name!r} and {other!r} differ only in case, and names are found in any case; rename one",
            )
    return name


def _pattern(value: object, kind: str, path: Path) -> str:
    pattern = shapes.text(value, path)
    if kind not in ("string", "path"):
        raise ShapeError(path, f"is for texts; this parameter is a {kind}")
    try:
        re.compile(pattern)
    except re.error as exc:
        raise ShapeError(path, f"{shapes.shown(pattern)} is no regular expression: {exc}") from exc
    return pattern


def _allowed(value: object, kind: str, path: Path) -> list[object]:
    if not isinstance(value, list) or not value:
        raise ShapeError(path, f"must be a list with at least one value, not {shapes.shown(value)}")
    values = [convert(item, kind) for item in value]
    for index, item in enumerate(values):
        if not is_a(item, kind):
            raise ShapeError((*path, index), f"{shapes.shown(item)} is no {kind}")
    return values


def _default(value: object, kind: str, schema: Mapping[str, object], path: Path) -> object:
    if not is_a(value, kind):
        raise ShapeError(path, f"{shapes.shown(value)} is no {kind}")
    allowed = schema.get("enum")
    if isinstance(allowed, Sequence) and value not in allowed:
        raise ShapeError(
            path,
            f"{shapes.shown(value)} is not among the allowed values {', '.join(map(str, allowed))}",
        )
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not matches(pattern, str(value)):
        raise ShapeError(path, f"{shapes.shown(value)} does not match the pattern {pattern!r}")
    return value


def fields_of(name: str, schema: Mapping[str, object], *, required: bool) -> dict[str, object]:
    """Return a recipe's fields for one property of a schema: the inverse of `write_property`."""
    rules = {
        "pattern": schema.get("pattern"),
        "allowedValues": schema.get("enum"),
        "pathMustExist": schema.get("pathMustExist"),
    }
    fields: dict[str, object] = {
        "name": name,
        "type": "path" if schema.get("format") == "path" else schema.get("type", "string"),
    }
    fields["required"] = required
    fields["description"] = schema.get("description", "")
    if "default" in schema:
        fields["default"] = schema["default"]
    kept = {key: value for key, value in rules.items() if value is not None}
    return {**fields, "validation": kept} if kept else fields


def list_fields(schema: Mapping[str, object]) -> list[dict[str, object]]:
    """Return a recipe's list of parameters for a schema: the inverse of `write_schema`."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return []
    return [
        fields_of(name, part, required=name in required)
        for name, part in properties.items()
        if isinstance(part, Mapping)
    ]
