"""Validation of a thread's parameters against the JSON Schema of its flow, with one sentence for
each violation.

Order: names (case-insensitive), defaults, required names, conversion of text to numbers and
booleans, types, expansion of paths, allowed values, patterns, existence of paths. Other keywords
are checked by the JSON Schema library after that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uncaged_bundles.contract import FOR_PEOPLE
from uncaged_bundles.errors import UsageError
from uncaged_bundles.paths import expanded
from uncaged_bundles.schemas import misfits
from uncaged_bundles.values import convert, is_a, matches

OURS = frozenset(
    {
        "type",
        "description",
        "title",
        "default",
        "enum",
        "pattern",
        "format",
        "pathMustExist",
        "examples",
        FOR_PEOPLE,
    }
)
OURS_OUTSIDE = frozenset(
    {"type", "properties", "required", "additionalProperties", "description", "title", "$schema"}
)
PATH = "path"


def settle(
    name: str,
    schema: Mapping[str, Any],
    params: Mapping[str, object],
    *,
    environment: Mapping[str, str],
    directory: Path,
) -> dict[str, object]:
    """Return the parameters as the flow gets them.

    Args:
        name: the flow, for messages. environment: for variables in paths. directory: base of
            relative paths.
    Raises:
        UsageError: all violations, one line each.
    """
    if not schema:
        if params:
            raise UsageError(
                f"{name} has no parameter {', '.join(map(repr, sorted(params)))}; it has: none"
            )
        return {}
    found = schema.get("properties")
    properties: dict[str, Any] = dict(found) if isinstance(found, Mapping) else {}
    named = find_names(name, properties, params)
    settled: dict[str, object] = {}
    problems: list[str] = []
    for key, part in properties.items():
        if key in named:
            value = named[key]
            if holds_nul(value):
                problems.append(f"{key}: holds a NUL character, which no program can be given")
                continue
        elif isinstance(part, Mapping) and part.get("default") is not None:
            value = part["default"]
        else:
            if key in schema.get("required", ()):
                problems.append(f"{key}: is required{_described(part)}")
            continue
        settled[key], problem = settle_one(
            part if isinstance(part, Mapping) else {}, value, environment, directory
        )
        problems += [f"{key}: {problem}"] if problem else []
    if not problems and needs_more(schema, properties):
        problems = misfits(schema, settled, "params")
    if problems:
        raise UsageError("\n".join(f"parameters of {name}: {problem}" for problem in problems))
    return settled


def holds_nul(value: object) -> bool:
    """Return whether a value holds a NUL character anywhere in it."""
    match value:
        case str():
            return "\0" in value
        case list():
            return any(map(holds_nul, value))
        case dict():
            return any(holds_nul(part) for pair in value.items() for part in pair)
        case _:
            return False


def find_names(
    flow: str, properties: Mapping[str, object], params: Mapping[str, object]
) -> dict[str, object]:
    """Return the values by the declared names, which match in any case."""
    by_lower = {declared.lower(): declared for declared in properties}
    named: dict[str, object] = {}
    unknown = []
    for key, value in params.items():
        declared = key if key in properties else by_lower.get(key.lower())
        if declared is None:
            unknown.append(key)
        elif declared in named:
            raise UsageError(f"parameters of {flow}: {declared}: is given twice, in different case")
        else:
            named[declared] = value
    if unknown:
        names = ", ".join(sorted(properties)) or "none"
        raise UsageError(
            f"{flow} has no parameter {', '.join(map(repr, sorted(unknown)))}; it has: {names}"
        )
    return named


def settle_one(
    part: Mapping[str, Any], value: object, environment: Mapping[str, str], directory: Path
) -> tuple[object, str | None]:
    """Return one value as the flow gets it, and its first violation or None."""
    kinds = kinds_of(part)
    if kinds and "string" not in kinds:
        value = next((found for kind in kinds if is_a(found := convert(value, kind), kind)), value)
    if kinds and not any(is_a(value, kind) for kind in kinds):
        return value, f"must be {' or '.join(kinds)}; {value!r} is not"
    if part.get("format") == PATH and isinstance(value, str):
        try:
            value = os.path.realpath(expanded(value, environment, directory))
        except ValueError as exc:
            return value, f"{value!r}: {exc}"
    allowed = part.get("enum")
    if isinstance(allowed, list) and not any(
        value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed
    ):
        return value, f"{value!r} is not among the allowed values {', '.join(map(str, allowed))}"
    pattern = part.get("pattern")
    if isinstance(pattern, str) and isinstance(value, str) and not matches(pattern, value):
        return value, f"{value!r} does not match the pattern {pattern!r}"
    if part.get("pathMustExist") and isinstance(value, str) and not Path(value).exists():
        return value, f"the path {value!r} does not exist"
    return value, None


def kinds_of(part: Mapping[str, Any]) -> tuple[str, ...]:
    kind = part.get("type")
    return (
        (kind,)
        if isinstance(kind, str)
        else tuple(map(str, kind))
        if isinstance(kind, list)
        else ()
    )


def needs_more(schema: Mapping[str, Any], properties: Mapping[str, object]) -> bool:
    """Whether the schema has keywords that the checks above do not know."""
    return not OURS_OUTSIDE.issuperset(schema) or any(
        not isinstance(part, Mapping) or not OURS.issuperset(part) for part in properties.values()
    )


def _described(part: object) -> str:
    text = part.get("description") if isinstance(part, Mapping) else None
    return f" ({text})" if text else ""
