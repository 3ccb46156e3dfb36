"""Interactive form for the answer of a role: one prompt per field, or a template in the editor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import click
from uncaged_bundles.errors import UsageError

from ..display.output import note
from .parameters import parse_value

TYPE_HINTS: Mapping[str, str] = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true | false",
    "object": "JSON",
    "array": "JSON",
}


def fill(schema: Mapping[str, object]) -> dict[str, object]:
    """Ask for each property of an object schema on the terminal; an empty answer omits an optional
    one.
    """
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    answers: dict[str, object] = {}
    for name, field in properties.items():
        hint = field.get("description", "")
        if hint:
            note(str(hint))
        if field.get("type") == "array":
            answer = _ask_items(name, schema)
            if answer or name in required:
                answers[name] = answer
            continue
        text = _ask_text(name, field, needed=name in required)
        if text or name in required:
            answers[name] = parse_value(name, text, schema)
    return answers


def template(schema: Mapping[str, object], value: str) -> dict[str, object]:
    """Return a template of the schema: *value* in each field, or the choices of the field."""
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))
    return {name: _template_of(field, value) for name, field in properties.items()}


def _template_of(field: Mapping[str, object], value: str) -> object:
    choices = field.get("enum")
    if field.get("type") == "array":
        return [value] if value else []
    return " | ".join(map(str, choices)) if value and isinstance(choices, list) else value


def _ask_text(name: str, field: Mapping[str, object], *, needed: bool) -> str:
    """Ask for a text until it is one of the choices of the field, if it has any."""
    choices = field.get("enum")
    choices_text = [str(choice) for choice in choices] if isinstance(choices, list) else []
    kind = (
        " | ".join(choices_text) if choices_text else TYPE_HINTS.get(str(field.get("type")), "text")
    )
    label = f"{name} ({kind}{'' if needed else ', may be empty'})"
    while True:
        text = str(click.prompt(label, err=True, default="", show_default=False))
        if not choices_text or text in choices_text or not (text or needed):
            return text
        note(f"{text!r} is not one of {', '.join(choices_text)}")


def _ask_items(name: str, schema: Mapping[str, object]) -> object:
    """Ask for a list line by line; JSON on the first line is taken as the whole list."""
    items: list[str] = []
    while True:
        label = (
            f"{name} (a list, one item per line; an empty line ends it)"
            if not items
            else f"{name} {len(items) + 1}"
        )
        text = str(click.prompt(label, err=True, default="", show_default=False)).strip()
        if not items and text.startswith("["):
            return parse_value(name, text, schema)
        if not text:
            return items
        items.append(text)


def edit(prompt: str, schema: Mapping[str, object]) -> object:
    """Open the editor with the question and an empty template.

    Raises:
        UsageError: the editor was closed without saving.
    """
    block = json.dumps(template(schema, ""), indent=2)
    commented = "\n".join(f"# {line}" for line in prompt.splitlines())
    text = click.edit(
        f"Write the answer here; lines that begin with # are ignored.\n\n```json\n{block}\n```\n\n{commented}\n",
        extension=".md",
    )
    if text is None:
        raise UsageError("the editor was closed without saving; nothing was answered")
    return "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip()
