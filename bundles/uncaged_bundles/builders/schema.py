"""JSON Schema of a role, from a mapping or from a pydantic model class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from uncaged_bundles.errors import BundleError

_SCHEMA_KEYS = frozenset(
    {
        "items",
        "additionalProperties",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
        "unevaluatedProperties",
    }
)
_SCHEMA_LISTS = frozenset({"oneOf", "anyOf", "allOf", "prefixItems"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
_DEFINITION = "#/$defs/"

Schema = dict[str, Any]


def freeze_schema(schema: object, path: str) -> Mapping[str, object]:
    """Return *schema* as JSON Schema.

    A model's definitions are put where they are used (those that contain themselves stay under
    ``$defs``), and titles are left out: pydantic makes them up from names, and an agent reads this
    text.

    Raises:
        BundleError: *schema* is neither a mapping nor a pydantic model class, or pydantic has no
            JSON Schema for one of its fields.
    """
    if isinstance(schema, Mapping):
        return schema
    if not isinstance(schema, type) or not hasattr(schema, "model_json_schema"):
        raise BundleError(
            f"{path} is {schema!r}; write it as JSON Schema (a dict) or as a pydantic model class"
        )
    from pydantic.errors import PydanticInvalidForJsonSchema

    try:
        raw: Schema = schema.model_json_schema()
    except PydanticInvalidForJsonSchema as exc:
        raise BundleError(
            f"{path}: the model {schema.__name__!r} has no JSON Schema: {exc.message}"
        ) from exc
    definitions: Schema = raw.pop("$defs", {})
    recursive = {name for name in definitions if name in _reachable(name, definitions)}
    frozen = _inlined(raw, definitions, recursive)
    kept = {
        name: _inlined(definitions[name], definitions, recursive)
        for name in definitions
        if name in recursive
    }
    return {**frozen, "$defs": kept} if kept else frozen


def statuses(schema: Mapping[str, object]) -> tuple[str, ...] | None:
    """Return the values that *schema* allows for ``status``, in its order; None if they are no
    closed list of texts.
    """
    found = dict.fromkeys(_statuses(schema, schema))
    words = tuple(word for word in found if isinstance(word, str))
    return words if words and len(words) == len(found) else None


def _statuses(schema: object, root: Mapping[str, object]) -> Iterator[object]:
    """Yield the values that the schema itself lists, else those of its branches."""
    node = _resolved(schema, root)
    properties = node.get("properties")
    status = (
        _resolved(properties["status"], root)
        if isinstance(properties, Mapping) and "status" in properties
        else {}
    )
    if "const" in status:
        yield status["const"]
    elif isinstance(listed := status.get("enum"), list):
        yield from listed
    else:
        for key in ("oneOf", "anyOf", "allOf"):
            branches = node.get(key)
            for branch in branches if isinstance(branches, list) else []:
                yield from _statuses(branch, root)


def _resolved(schema: object, root: Mapping[str, object]) -> Mapping[str, object]:
    """Follow references to definitions; each only once, so that a cycle ends."""
    seen: set[object] = set()
    while isinstance(schema, Mapping) and "$ref" in schema and schema["$ref"] not in seen:
        reference = schema["$ref"]
        seen.add(reference)
        definitions = root.get("$defs")
        name = str(reference).removeprefix(_DEFINITION)
        schema = definitions.get(name) if isinstance(definitions, Mapping) else None
    return schema if isinstance(schema, Mapping) else {}


def _reachable(name: str, definitions: Schema) -> set[str]:
    """Return the names of the definitions that *name* refers to, directly or not; *name* itself
    only if it is recursive.
    """
    found: set[str] = set()
    pending = [name]
    while pending:
        for reference in _references(definitions[pending.pop()]):
            if reference not in found:
                found.add(reference)
                pending.append(reference)
    return found


def _references(node: object) -> Iterator[str]:
    match node:
        case {"$ref": str(reference)}:
            yield reference.removeprefix(_DEFINITION)
        case _:
            pass
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from _references(child)


def _inlined(schema: Any, definitions: Schema, recursive: set[str]) -> Any:
    if not isinstance(schema, dict):  # `additionalProperties: false` and the like
        return schema
    reference = str(schema.get("$ref", "")).removeprefix(_DEFINITION)
    if reference in definitions and reference not in recursive:
        schema = {
            **definitions[reference],
            **{key: value for key, value in schema.items() if key != "$ref"},
        }
        return _inlined(schema, definitions, recursive)
    return {
        key: _inlined_under(key, value, definitions, recursive)
        for key, value in schema.items()
        if key not in ("title", "discriminator")
    }


def _inlined_under(key: str, value: Any, definitions: Schema, recursive: set[str]) -> Any:
    if key in _SCHEMA_KEYS:
        return _inlined(value, definitions, recursive)
    if key in _SCHEMA_LISTS:
        return [_inlined(item, definitions, recursive) for item in value]
    if key in _SCHEMA_MAPS:
        return {name: _inlined(item, definitions, recursive) for name, item in value.items()}
    return value
