"""Placeholders in the parameters of a translated call: references to earlier results and to named
things, replaced by text.

    ${entity-0}                  the name of the thing, alone or inside a text
    ${entity-0.value[0].to}      what the path leads to in {"name", "type", "value"}
    ${result-1}                  the data of the result, or its message if it has none
    ${result-1.data.files[0]}    what the path leads to in the result

null becomes an empty text, a text is taken as it is, numbers and booleans become text, objects and
arrays JSON. What a placeholder was replaced by is not read again. Pure; needs `re` and `json`
alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from uncaged_bundles.errors import UsageError

PathMode = Literal["throw", "fallback-to-name", "passthrough", "off"]
"""What becomes of a path: it must resolve; else the name is used; else the placeholder stays; or
no path is followed at all.
"""
Reference = Mapping[str, Any]

_PLACEHOLDER = re.compile(r"\$\{(entity|result)-(\d{1,6})((?:\.[^.\[\]{}]+|\[\d{1,6}\])*)\}")
_STEP = re.compile(r"\.([^.\[\]{}]+)|\[(\d+)\]")
_MISS = object()


def resolve_placeholders(
    value: object,
    *,
    entities: Sequence[Reference] = (),
    results: Sequence[Reference] = (),
    mode: PathMode = "throw",
) -> Any:
    """Return *value* with the placeholders in its texts replaced; keys of objects are kept.

    Args:
        entities: ``{"name", "type", "value"}`` each. results: ``{"data", "message", …}`` each.
    Raises:
        UsageError: a reference names nothing, or with ``throw`` a path leads nowhere.
    """
    match value:
        case str():
            return _PLACEHOLDER.sub(
                lambda found: _replacement(found, value, entities, results, mode), value
            )
        case Mapping():
            return {
                key: resolve_placeholders(item, entities=entities, results=results, mode=mode)
                for key, item in value.items()
            }
        case list() | tuple():
            return [
                resolve_placeholders(item, entities=entities, results=results, mode=mode)
                for item in value
            ]
        case _:
            return value


def _replacement(
    found: re.Match[str],
    text: str,
    entities: Sequence[Reference],
    results: Sequence[Reference],
    mode: PathMode,
) -> str:
    kind, number, path = found[1], int(found[2]), found[3]
    known = entities if kind == "entity" else results
    if number >= len(known):
        word = "Entity" if kind == "entity" else "Result"
        raise UsageError(f'{word} reference not found: ${{{kind}-{number}}} in "{text}"')
    reference = known[number]
    if not path:
        return _text(_whole(kind, reference))
    if mode == "off":
        return found[0]
    value = _walk(reference, path)
    if value is not _MISS:
        return _text(value)
    match mode:
        case "throw":
            raise UsageError(f'{kind.title()} path did not resolve: {found[0]} in "{text}"')
        case "fallback-to-name":
            return _text(_whole(kind, reference))
        case "passthrough":
            return found[0]


def _whole(kind: str, reference: Reference) -> object:
    """Return what a placeholder without a path means."""
    if kind == "entity":
        return reference.get("name")
    data = reference.get("data")
    return reference.get("message") if data is None else data


def _walk(value: object, path: str) -> object:
    for name, index in _STEP.findall(path):
        if name and isinstance(value, Mapping) and name in value:
            value = value[name]
        elif index and isinstance(value, list | tuple) and int(index) < len(value):
            value = value[int(index)]
        else:
            return _MISS
    return value


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case _:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
