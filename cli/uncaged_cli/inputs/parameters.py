"""Parameters from the command line and from files, converted to the types of the flow's schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from uncaged_bundles.errors import DamagedError, UsageError
from uncaged_bundles.values import convert

from ..catalog import nearest
from .files import parse_json, read_text

LITERAL_TYPES = frozenset(("integer", "number", "boolean", "array", "object", "null"))


def gather(
    file: Path | None, pairs: Iterable[str], schema: Mapping[str, object]
) -> dict[str, object]:
    """Return the parameters of *file*, overridden by *pairs*.

    Args:
        file: a JSON or YAML mapping.
        pairs: ``NAME=VALUE`` texts.
        schema: the JSON Schema of the flow's parameters.
    """
    gathered = read_file(file) if file is not None else {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--param {pair!r} is not NAME=VALUE")
        name = declared_name(name, schema)
        gathered[name] = parse_value(name, text, schema)
    return gathered


def declared_name(name: str, schema: Mapping[str, object]) -> str:
    """Return the declared name that equals *name* in any case, else *name*."""
    properties = schema.get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    return (
        name
        if name in declared
        else next((known for known in declared if known.lower() == name.lower()), name)
    )


def read_file(file: Path) -> dict[str, object]:
    """Return the mapping in a JSON or YAML file."""
    value = _load(file, read_text(file))
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise UsageError(f"{str(file)!r} is not a mapping of names to values")
    return value


def read_json(file: Path) -> object:
    """Return the JSON value of a file."""
    try:
        return parse_json(read_text(file))
    except ValueError as exc:
        raise UsageError(f"{str(file)!r} is not JSON: {exc}") from exc


def parse_value(name: str, text: str, schema: Mapping[str, object]) -> object:
    """Convert *text* to the declared type of *name*; an undeclared name takes JSON if the text
    parses.
    """
    properties = schema.get("properties")
    declared = properties.get(name) if isinstance(properties, Mapping) else None
    if (
        declared is None
        and isinstance(properties, Mapping)
        and properties
        and schema.get("additionalProperties") is False
    ):
        raise UsageError(
            f"no parameter {name!r}{nearest(name, properties) or f'; the parameters are {_listed(properties)}'}"
        )
    types = _types(declared)
    if types == {"boolean"}:
        return as_boolean(name, text)
    if "string" in types or (isinstance(declared, Mapping) and text in _list(declared.get("enum"))):
        return text
    try:
        return parse_json(text)
    except ValueError as problem:
        if types & LITERAL_TYPES:
            raise UsageError(
                f"parameter {name!r} must be {' or '.join(sorted(types))}; {text!r} is not"
            ) from problem
        return text


def as_boolean(name: str, text: str) -> object:
    value = convert(text, "boolean")
    if not isinstance(value, bool):
        raise UsageError(f"parameter {name!r} must be boolean; {text!r} is not")
    return value


def _types(declared: object) -> frozenset[str]:
    kinds = declared.get("type") if isinstance(declared, Mapping) else None
    if isinstance(kinds, str):
        return frozenset((kinds,))
    return frozenset(str(kind) for kind in kinds) if isinstance(kinds, list) else frozenset()


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _load(file: Path, text: str) -> object:
    if file.suffix == ".json":
        try:
            return parse_json(text)
        except json.JSONDecodeError as problem:
            raise UsageError(f"{file}:{problem.lineno}: not JSON: {problem.msg}") from problem
        except ValueError as problem:
            raise UsageError(f"{file}: not JSON: {problem}") from problem
    from uncaged_bundles.storage.document import load_yaml

    try:
        return load_yaml(text.encode(), str(file))
    except DamagedError as problem:
        raise UsageError(f"neither JSON nor YAML: {problem}") from problem


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
