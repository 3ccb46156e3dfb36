"""Validation of the JSON output of a verb against its schema in docs/json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[2] / "docs" / "json"
GROUPS = {
    "browser": (
        "ask",
        "close",
        "external",
        "extract",
        "launch",
        "open",
        "parts",
        "resolver",
        "search",
        "status",
        "stop",
        "tabs",
    ),
    "constructions": ("delete", "list", "promote", "prune", "show"),
    "conversation": ("cancel", "delete", "list", "new", "rename", "show", "status", "switch"),
    "patterns": ("suggest",),
    "thread": ("diff", "fetch", "merge", "pin", "rm", "show"),
    "grammar": ("check", "complete", "match"),
    "keys": ("list", "rm", "set"),
    "mcp": ("config",),
    "memory": ("list", "search", "show"),
    "notify": ("clear", "list", "show", "test"),
    "schedule": ("add", "disable", "enable", "install", "rm", "show"),
    "proposal": ("accept", "reject", "show"),
    "store": ("check", "copy", "dispatcher"),
    "queue": ("reset", "set"),
    "pack": ("add", "disable", "enable", "list", "remove", "scan", "show"),
}
NESTED = frozenset({("browser", "actions"), ("browser", "knowledge")})
"""Groups in a group."""
LISTED = frozenset({"memory", "notify"})
"""Groups that list if no subcommand is named."""
FOLLOWED = frozenset({"action", "do", "run", "resume", "answer", "fork"})
NOT_FOLLOWED = frozenset({"--detach", "--help-flow", "--estimate", "--explain"})


def check_document(words: Sequence[str], stdout: str) -> None:
    """Fail if what a command printed does not fit the schema of its verb."""
    name = schema_name(words)
    if name is None or "--json" not in words or not stdout:
        return
    documents = (
        [json.loads(line) for line in stdout.splitlines()]
        if name in ("events", "log", "work")
        else [json.loads(stdout)]
    )
    for document in documents:
        problems = [
            f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(document)
        ]
        assert not problems, f"{' '.join(words)} does not fit docs/json/{name}.json: {problems}"


def schema_name(words: Sequence[str]) -> str | None:
    """Return the schema of a command line; None for a verb without one."""
    verb = words[0] if words else ""
    if verb == "do" and (sentence := next((word for word in words if word[:1] == "@"), "")):
        return schema_name(sentence[1:].split())
    if verb == "do" and "--explain" in words:
        return "explain"
    if tuple(words[:3]) == ("browser", "actions", "goal"):
        return "events"
    if tuple(words[:2]) in NESTED:
        return "-".join(words[:3])
    if verb in GROUPS:
        default = "list" if verb in LISTED else "show"
        inner = next((word for word in words[1:] if word in GROUPS[verb]), default)
        if verb == "thread" and inner == "show" and {"-f", "--follow"} & set(words):
            return "events"
        return f"{verb}-{inner}"
    if verb == "random" and "--run" in words:
        return "events"
    if verb in FOLLOWED and not NOT_FOLLOWED & set(words):
        return "events"
    return verb if (SCHEMAS / f"{verb}.json").exists() else None


@cache
def validator(name: str) -> Draft202012Validator:
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
