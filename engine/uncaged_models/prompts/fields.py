"""Description of a JSON Schema as a list of fields in words. The whole schema is added if words
would lose something.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import cast

from uncaged_bundles.contract import CLAIM

Schema = Mapping[str, object]

MAX_LEVEL = 6
MAX_WORD_LEVEL = 2
MAX_FORMS = 8
MAX_LINES = 200
"""Bounds for schemas whose references unfold to millions of lines; beyond them the schema is
quoted.
"""

TYPE_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "object",
}
LIMIT_WORDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "matching {}",
    "format": "format {}",
    CLAIM: "checked against the working tree",
}
SIZES = ("minLength", "minItems")
NOT_EMPTY = "not empty"
EXPRESSIBLE = frozenset(
    {
        "$defs",
        "$schema",
        "$ref",
        "title",
        "description",
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
    }
    | {"oneOf", "anyOf", "default", "examples", "discriminator", "uniqueItems"}
    | LIMIT_WORDS.keys()
)


def describe_fields(schema: Schema) -> str:
    """Return the fields of the object that *schema* describes, one line each."""
    lines = list(islice(fields_of(schema, schema, 0), MAX_LINES + 1)) or [
        "(no field is prescribed)"
    ]
    if len(lines) > MAX_LINES or not is_expressible(schema):
        lines = lines[:MAX_LINES]
        lines += [
            "",
            f"The whole JSON Schema: {json.dumps(schema, ensure_ascii=False, separators=(',', ':'))}",
        ]
    return "\n".join(lines)


def fields_of(schema: Schema, root: Schema, level: int) -> Iterator[str]:
    schema = resolved(schema, root)
    indent = "  " * level
    if level > MAX_LEVEL:
        yield f"{indent}- …"
        return
    required = set(cast("Sequence[str]", schema.get("required", ())))
    for name, raw in mapping(schema.get("properties")).items():
        value = resolved(mapping(raw), root)
        need = "" if name in required else ", optional"
        text = f": {value['description']}" if "description" in value else ""
        yield f"{indent}- `{name}` ({words_of(value, root)}{need}){text}"
        yield from inner_fields(value, root, level + 1)
    yield from forms_of(schema, root, level)


def inner_fields(value: Schema, root: Schema, level: int) -> Iterator[str]:
    """Yield the fields of an object, of a list's items, or of alternative forms."""
    if value.get("type") == "array":
        items = resolved(mapping(value.get("items")), root)
        if "properties" in items or forms(items):
            yield from fields_of(items, root, level)
    elif "properties" in value or any(
        "properties" in resolved(form, root) for form in forms(value)
    ):
        yield from fields_of(value, root, level)


def forms_of(schema: Schema, root: Schema, level: int) -> Iterator[str]:
    indent = "  " * level
    choices = [form for form in forms(schema) if resolved(form, root).get("type") != "null"]
    if len(choices) == 1:
        yield from fields_of(choices[0], root, level)
    elif choices:
        yield f"{indent}- one of these {len(choices)} forms:"
        for number, form in enumerate(choices, 1):
            known = resolved(form, root)
            text = f": {known['description']}" if "description" in known else ""
            yield f"{indent}  - form {number}{text}"
            yield from fields_of(form, root, level + 2)


def words_of(value: Schema, root: Schema, level: int = 0) -> str:
    """Return the type and the bounds of a value in words."""
    value = resolved(value, root)
    limits = [
        NOT_EMPTY if key in SIZES and value[key] == 1 else words.format(value[key])
        for key, words in LIMIT_WORDS.items()
        if key in value
    ]
    return ", ".join([kind_of(value, root, level), *limits])


def kind_of(value: Schema, root: Schema, level: int) -> str:
    if level > MAX_WORD_LEVEL:
        return "…"
    if "const" in value:
        return f"always {shown(value['const'])}"
    if "enum" in value:
        return (
            f"one of {', '.join(shown(word) for word in cast('Sequence[object]', value['enum']))}"
        )
    choices = forms(value)
    if choices:
        return " or ".join(dict.fromkeys(words_of(form, root, level + 1) for form in choices))
    kind = value.get("type", "object" if "properties" in value else "any value")
    if isinstance(kind, list):
        return " or ".join(TYPE_WORDS.get(str(word), str(word)) for word in kind)
    if kind == "array":
        inner = words_of(mapping(value.get("items")), root, level + 1)
        if "items" not in value:
            return "list"
        return f"list of ({inner})" if ", " in inner else f"list of {inner}"
    return TYPE_WORDS.get(str(kind), str(kind))


def forms(value: Schema) -> list[Schema]:
    """Return the alternative forms of a value, without those that only add bounds."""
    found = value.get("oneOf") or value.get("anyOf") or ()
    return [mapping(form) for form in cast("Sequence[object]", found)][:MAX_FORMS]


def resolved(schema: Schema, root: Schema) -> Schema:
    """Follow ``$ref`` into the schema's own ``$defs``; sibling keywords stay."""
    for _ in range(MAX_LEVEL):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
            break
        target = mapping(mapping(root.get("$defs")).get(reference.removeprefix("#/$defs/")))
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def is_expressible(schema: object) -> bool:
    """Return whether words express all that the schema demands."""
    if not isinstance(schema, Mapping):
        return True
    if not EXPRESSIBLE.issuperset(schema):
        return False
    if isinstance(schema.get("additionalProperties"), Mapping) or not isinstance(
        schema.get("items", {}), Mapping
    ):
        return False
    if any(
        len(cast("Sequence[object]", schema.get(key, ()))) > MAX_FORMS for key in ("oneOf", "anyOf")
    ):
        return False
    inner = [part for key in ("properties", "$defs") for part in mapping(schema.get(key)).values()]
    inner += [schema["items"]] if "items" in schema else []
    return all(is_expressible(part) for part in (*inner, *forms(schema)))


def mapping(value: object) -> Schema:
    return value if isinstance(value, Mapping) else {}


def shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
