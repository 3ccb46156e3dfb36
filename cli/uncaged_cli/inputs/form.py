"""A person who answers for a role is asked field by field, or writes into a file, and never has to
know the schema by heart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import click
from uncaged_bundles.errors import UsageError

from ..display.output import note
from .parameters import parse_value

WORDS: Mapping[str, str] = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true | false",
    "object": "JSON",
    "array": "JSON",
}


def fill(schema: Mapping[str, object]) -> dict[str, object]:
    """Ask for each property of an object's schema on the terminal; an empty answer leaves out what
    is not required.
    """
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    answers: dict[str, object] = {}
    for name, field in properties.items():
        hint = field.get("description", "")
        if hint:
            note(str(hint))
        if field.get("type") == "array":
            answer = _items(name, schema)
            if answer or name in required:
                answers[name] = answer
            continue
        text = _choice(name, field, needed=name in required)
        if text or name in required:
            answers[name] = parse_value(name, text, schema)
    return answers


def blank(schema: Mapping[str, object], value: str) -> dict[str, object]:
    """Return a mapping of the schema's fields, to be filled in: with *value* in each, and its
    choices where there are some.
    """
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))
    return {name: _blank(field, value) for name, field in properties.items()}


def _blank(field: Mapping[str, object], value: str) -> object:
    choices = field.get("enum")
    if field.get("type") == "array":
        return [value] if value else []
    return " | ".join(map(str, choices)) if value and isinstance(choices, list) else value


def _choice(name: str, field: Mapping[str, object], *, needed: bool) -> str:
    """Ask for one text until it is one of the field's choices, if it has any."""
    choices = field.get("enum")
    words = [str(choice) for choice in choices] if isinstance(choices, list) else []
    kind = " | ".join(words) if words else WORDS.get(str(field.get("type")), "text")
    label = f"{name} ({kind}{'' if needed else ', may be empty'})"
    while True:
        text = str(click.prompt(label, err=True, default="", show_default=False))
        if not words or text in words or not (text or needed):
            return text
        note(f"{text!r} is none of {', '.join(words)}")


def _items(name: str, schema: Mapping[str, object]) -> object:
    """A list is asked for line by line, because its texts may hold whatever people write; who has
    it as JSON may give that.
    """
    items: list[str] = []
    while True:
        label = (
            f"{name} (a list, one a line; an empty line ends it)"
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
    """Open the person's editor on the question, with an empty block to fill in.

    Raises:
        UsageError: the editor was left without saving.
    """
    block = json.dumps(blank(schema, ""), indent=2)
    commented = "\n".join(f"# {line}" for line in prompt.splitlines())
    text = click.edit(
        f"Write here; lines that begin with # are left out.\n\n```json\n{block}\n```\n\n{commented}\n",
        extension=".md",
    )
    if text is None:
        raise UsageError("the editor was left without saving; nothing was answered")
    return "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip()
