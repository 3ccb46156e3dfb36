"""JSON Schemas of tools, from servers that are not trusted, as schemas of a flow's parameters.

What cannot be checked here safely (patterns, references in a circle or to other documents) is left
to the server.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.clean import clean, shorten
from uncaged_bundles.contract import CLAIM, FOR_PEOPLE
from uncaged_bundles.validation.schemas import check_schema

MAX_SCHEMA_CHARACTERS = 32_768
MAX_DEPTH = 20
MAX_PROPERTIES = 64
MAX_TEXT_CHARACTERS = 300
_NAME = re.compile(r"[A-Za-z0-9_.$@-]{1,64}")
_DROPPED = frozenset(
    {
        *("pattern", "patternProperties", "propertyNames", "pathMustExist", "format", "examples"),
        *("$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$comment", "$vocabulary"),
        *(FOR_PEOPLE, CLAIM),
    }
)
"""Keywords that compare values with a stranger's regular expressions, mean something to this engine
alone, or name other documents.
"""
_OF_NAMES = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value maps names to schemas."""
_DATA = frozenset({"default", "enum", "const", "required", "type", "dependentRequired"})
_TOP = frozenset({"type", "properties", "required", "additionalProperties", "description"})
_DEFINITIONS = frozenset({"$defs", "definitions"})


class SchemaRefused(Exception):
    """Reason why a tool with this schema is left out."""


def parameters_of(schema: object) -> dict[str, Any]:
    """Return the schema of a flow's parameters for the schema of a tool's arguments.

    Raises:
        SchemaRefused: it is no schema of an object, or too large.
    """
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise SchemaRefused("its arguments are no object")
    if _depth(schema) > MAX_DEPTH:
        raise SchemaRefused(f"its schema has more than {MAX_DEPTH} levels")
    if len(json.dumps(schema)) > MAX_SCHEMA_CHARACTERS:
        raise SchemaRefused(f"its schema has more than {MAX_SCHEMA_CHARACTERS:,} characters")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or len(properties) > MAX_PROPERTIES:
        raise SchemaRefused(f"it has more than {MAX_PROPERTIES} parameters, or no list of them")
    for name in properties:
        if not _NAME.fullmatch(name):
            raise SchemaRefused(f"{shorten(name, 40)!r} cannot name a parameter")
    found = _cleaned({**schema, "type": "object", "properties": properties})
    required = found.get("required", [])
    if not isinstance(required, list) or not all(name in properties for name in required):
        found.pop("required", None)
    return _checkable(found)


def _depth(value: object) -> int:
    """Return the levels of a JSON value, without recursion; one more than the limit is enough."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return depth


def _cleaned(schema: object) -> Any:
    """Return a schema without the keywords that are dropped, its texts cleaned."""
    if isinstance(schema, list):
        return [_cleaned(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DROPPED or not _NAME.fullmatch(key):
            continue
        if key in _OF_NAMES and isinstance(value, dict):
            found[key] = {
                name: _cleaned(part) for name, part in value.items() if _NAME.fullmatch(name)
            }
        elif key in ("description", "title"):
            if isinstance(value, str):
                found[key] = shorten(value, MAX_TEXT_CHARACTERS)
        elif key not in _DATA:
            found[key] = _cleaned(value)
        elif _is_plain(value):
            found[key] = value
    return found


def _is_plain(value: object) -> bool:
    """Return whether the data in a schema can be shown and written as it is."""
    match value:
        case str():
            return clean(value) == value
        case list():
            return all(map(_is_plain, value))
        case dict():
            return all(_is_plain(part) for pair in value.items() for part in pair)
        case float():
            return math.isfinite(value)
        case _:
            return True


def _checkable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the parts that can be checked; an unusable property takes any
    value.
    """
    definitions = _definitions(schema)
    properties = {
        name: part if _is_usable(part, definitions) else _described(part)
        for name, part in schema["properties"].items()
    }
    plain = {key: value for key, value in schema.items() if key in _TOP and key != "properties"}
    more = {
        key: value for key, value in schema.items() if key not in _TOP and key not in _DEFINITIONS
    }
    if not _is_usable(plain, definitions):
        plain = {"type": "object"}
    whole = {**plain, "properties": properties, **(more if _is_usable(more, definitions) else {})}
    for target in definitions if set(_references(whole)) else ():
        key, name = target.removeprefix("#/").split("/")
        whole.setdefault(key, {})[name] = schema[key][name]
    return whole


def _definitions(schema: Mapping[str, Any]) -> set[str]:
    """Return the references to definitions that can be checked and lead in no circle."""
    parts = {
        f"#/{key}/{name}": part
        for key in sorted(_DEFINITIONS & schema.keys())
        if isinstance(schema[key], dict)
        for name, part in schema[key].items()
    }
    found: set[str] = set()
    while True:
        ready = {target for target in parts.keys() - found if _is_usable(parts[target], found)}
        if not ready:
            return found
        found |= ready


def _is_usable(part: object, definitions: Collection[str]) -> bool:
    """Return whether a part is valid and refers to these definitions alone."""
    if not isinstance(part, dict) or not set(_references(part)) <= set(definitions):
        return False
    try:
        check_schema(part, ("parameters",))
    except (shapes.ShapeError, RecursionError):
        return False
    return True


def _described(part: object) -> dict[str, Any]:
    text = part.get("description") if isinstance(part, dict) else None
    return {"description": text} if isinstance(text, str) else {}


def _references(value: object) -> Iterator[str]:
    """Yield the targets of the references anywhere in a schema."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            target = item.get("$ref")
            if isinstance(target, str):
                yield target
            pending += item.values()
        elif isinstance(item, list):
            pending += item
