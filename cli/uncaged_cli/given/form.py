"""A person who answers for a role is asked field by field, or writes into a file, and never has to know the schema by heart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import click
from uncaged_bundles.errors import UsageError

from ..display.screen import note
from .parameters import parse_value


def fill(schema: Mapping[str, object]) -> dict[str, object]:
    """Ask for each property of an object's schema on the terminal; an empty answer leaves out what is not required."""
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    answers: dict[str, object] = {}
    for name, field in properties.items():
        hint = field.get("description", "")
        choices = field.get("enum")
        if hint:
            note(str(hint))
        if isinstance(choices, list):
            label = f"{name} ({' | '.join(map(str, choices))})"
        else:
            label = f"{name} ({field.get('type', 'text')}{'' if name in required else ', may be empty'})"
        text = str(click.prompt(label, err=True, default="", show_default=False))
        if text or name in required:
            answers[name] = _value(name, text, field, schema)
    return answers


def blank(schema: Mapping[str, object], value: str) -> dict[str, str]:
    """Return a mapping of the schema's fields, to be filled in, with *value* in each."""
    return dict.fromkeys(cast("Mapping[str, object]", schema.get("properties", {})), value)


def _value(name: str, text: str, field: Mapping[str, object], schema: Mapping[str, object]) -> object:
    if field.get("type") == "array" and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    return parse_value(name, text, schema)


def edit(prompt: str, schema: Mapping[str, object]) -> object:
    """Open the person's editor on the question, with an empty block to fill in.

    Raises:
        UsageError: the editor was left without saving.
    """
    block = json.dumps(blank(schema, ""), indent=2)
    commented = "\n".join(f"# {line}" for line in prompt.splitlines())
    text = click.edit(f"Write here; lines that begin with # are left out.\n\n```json\n{block}\n```\n\n{commented}\n", extension=".md")
    if text is None:
        raise UsageError("the editor was left without saving; nothing was answered")
    return "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip()
