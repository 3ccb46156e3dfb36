"""Scripted model that fixes a flow: it reads `flow.json`, writes another recipe, and answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..outside.scripted_model import Call, Conversation, Play
from .case import Recipe

__all__ = ["editing"]

FILE = "flow.json"


def editing(conversation: Conversation, recipe: Recipe | None) -> Play:
    """Look at the failure, and write the recipe if there is a tool for it; without a recipe report
    that nothing can be done.
    """
    found: list[str] = []
    if "read" in conversation.tools:
        found = yield [Call(tool="read", arguments={"path": name}) for name in ("error.txt", FILE)]
    if "write" in conversation.tools and recipe is not None:
        text = json.dumps(merged(found[-1] if found else "", recipe), indent=2) + "\n"
        yield [Call(tool="write", arguments={"path": FILE, "text": text})]
    answer = filled(schema_of(conversation.text), able=recipe is not None)
    return f"This is the cause and the change.\n\n```json\n{json.dumps(answer)}\n```\n"


def merged(present: str, recipe: Recipe) -> Mapping[str, Any]:
    """Return the recipe with those keys of the present file that it does not have."""
    try:
        return {**json.loads(present), **recipe}
    except ValueError:
        return recipe


def schema_of(text: str) -> Mapping[str, Any]:
    """Return the JSON schema of the answer in a role's prompt; {} without one."""
    for start in (match.start() for match in re.finditer(r"\{", text)):
        try:
            value, _ = json.JSONDecoder().raw_decode(text[start:])
        except ValueError:
            continue
        if isinstance(value, dict) and value.get("type") == "object" and "properties" in value:
            return value
    return {}


def filled(schema: Mapping[str, Any], *, able: bool) -> Any:
    """Return a value that fits a schema: the first of several choices, the last if nothing can be
    done.
    """
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0 if able else -1]
    match schema.get("type"):
        case "object" | None:
            properties = schema.get("properties", {})
            return {key: filled(properties[key], able=able) for key in properties}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return able
        case _:
            return "the script of a benchmark"
