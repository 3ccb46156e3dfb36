"""Arguments of a coding program for one request: the role's rights, its schema, and the prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from uncaged_bundles.rights import CHANGING
from uncaged_engine.door.agents import AgentRequest

from .table import ProgramRow

STRICT_KEYWORDS = frozenset(
    {
        "type",
        "description",
        "title",
        "enum",
        "const",
        "items",
        "properties",
        "required",
        "additionalProperties",
    }
)
"""The subset of JSON Schema that services accept; any other schema is described in the prompt
alone.
"""
MAX_ARGUMENT_BYTES = 120_000
"""One argument cannot be larger than 128 KiB on Linux."""


def rights_of(row: ProgramRow, request: AgentRequest) -> Sequence[str]:
    """Return the arguments that give the program the role's rights, as far as it has options for
    them.
    """
    rights, level = request.rights, level_of(request)
    if not row.named or (rights.tools is None and not rights.network):
        return row.rights.get(level, ())
    # nothing would keep its commands from writing
    usable = {
        *(() if level == "none" else rights.usable(writable=level == "write")),
        *(("network",) if rights.network else ()),
    } - ({"run"} if level == "read" else set())
    allowed = dict.fromkeys(
        name for tool, names in row.tools.items() if tool in usable for name in names
    )
    partly = {name.partition("(")[0] for name in allowed}
    others = dict.fromkeys(
        name
        for names in row.tools.values()
        for name in names
        if "(" not in name and name not in partly
    )
    lists = {"{allowed}": allowed, "{others}": others}
    words: list[str] = []
    for word in row.named:
        if word not in lists:
            words.append(word)
        elif lists[word]:
            words.append(",".join(lists[word]))
        else:
            words.pop()  # the option's name
    return words


def level_of(request: AgentRequest) -> str:
    """Return the role's access to the workspace: none, read or write."""
    if request.worktree is None:
        return "none"
    return (
        "write" if request.writable and any(map(request.rights.may, (*CHANGING, "run"))) else "read"
    )


def schema_arguments(row: ProgramRow, request: AgentRequest) -> list[str]:
    """Write the role's schema to a file and return its option, where program and schema allow
    it.
    """
    if not row.schema or not is_strict(request.role.schema):
        return []
    file = request.scratch / "schema.json"
    file.write_text(json.dumps(request.role.schema), "utf-8")
    return [word.replace("{file}", str(file)) for word in row.schema]


def is_strict(schema: object) -> bool:
    """Return whether each object is closed and requires all of its properties, by plain keywords
    alone.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return False
    return _is_plain(schema)


def _is_plain(schema: object) -> bool:
    if (
        not isinstance(schema, Mapping)
        or not set(schema) <= STRICT_KEYWORDS
        or not isinstance(schema.get("type"), str)
    ):
        return False
    if schema["type"] == "object":
        properties, required = schema.get("properties"), schema.get("required")
        if (
            not isinstance(properties, Mapping)
            or not isinstance(required, list)
            or schema.get("additionalProperties") is not False
        ):
            return False
        return set(required) == set(properties) and all(
            _is_plain(inner) for inner in properties.values()
        )
    return _is_plain(schema.get("items")) if schema["type"] == "array" else True


def argument_of(prompt: str, scratch: Path) -> str:
    """Return the prompt as one argument; one that is too long goes into a file, which the argument
    names.
    """
    if len(prompt.encode("utf-8", "backslashreplace")) <= MAX_ARGUMENT_BYTES:
        return prompt.replace("\0", "\\0")
    file = scratch / "prompt.md"
    file.write_text(prompt, "utf-8", "backslashreplace")
    return f"Read the file {file} as a whole and do what it says; it is your task."
