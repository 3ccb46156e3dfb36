"""`--json` of all verbs: one naming, and a schema each in docs/json."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from testbed.documents import GROUPS, SCHEMAS, check_document
from uncaged_cli.main import group

Command = Callable[..., subprocess.CompletedProcess[str]]
AddFlow = Callable[..., str]
CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z]*)*")


def verbs_with_json() -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield from within(name, command)


def within(name: str, command: click.Command) -> Iterator[str]:
    """Yield the names of a command, or of those below it, that print JSON."""
    if isinstance(command, click.Group):
        for inner, part in command.commands.items():
            yield from within(f"{name}-{inner}", part)
    elif any("--json" in parameter.opts for parameter in command.params):
        yield name


def test_each_verb_has_a_schema() -> None:
    """A verb that prints JSON has its schema, and no schema is left over."""
    assert sorted({*verbs_with_json(), "events"}) == sorted(
        path.stem for path in SCHEMAS.glob("*.json")
    )
    assert {f"{verb}-{inner}" for verb, parts in GROUPS.items() for inner in parts} <= set(
        verbs_with_json()
    )


def properties(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        for part in schema.values():
            yield from properties(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from properties(part)


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_names_are_the_same_everywhere(path: Path) -> None:
    """Names are in camel case, a time says its unit, and a flow, a thread and a hash have one name
    each.
    """
    for name, schema in properties(json.loads(path.read_text())):
        assert CAMEL.fullmatch(name), name
        assert name not in ("thread_id", "threadHash", "timestamp", "created", "id")
        if isinstance(schema, dict) and str(schema.get("description", "")).startswith(
            "a thread's id"
        ):
            assert name == "threadId"


@pytest.mark.slow
def test_what_verbs_print_fits_their_schemas(
    command: Command, flow: AddFlow, tmp_path: Path
) -> None:
    """Each line of commands is checked against docs/json by the fixture that runs it; a wrong
    document is found.
    """
    flow("echo")
    (tmp_path / "echo.py").write_text(
        (tmp_path / "echo.py").read_text().replace('"said"', '"sung"')
    )
    for words in (
        "add echo echo.py --accept",
        "add echo echo.py --check",
        "agents",
        "build echo.py",
        "completion bash",
        "demo shop",
        "diff echo",
        "disable echo",
        "doctor",
        "enable echo",
        "run echo --param times=1",
        "run echo --detach",
        "run echo --help-flow",
        "run echo --estimate",
        "threads",
        "thread latest",
        "thread latest --follow",
        "thread show latest",
        "verify latest",
        "verify echo --on head",
        "fork latest --at 0 --detach",
        "fork latest --at 0",
        "graph echo",
        "history echo",
        "init mine",
        "keys list",
        "list",
        "ps",
        "log latest",
        "log -n 3",
        "show echo",
        "test echo",
        "tools",
        "tools --format mcp",
        "rollback echo",
        "diff --threads latest latest",
        "archive --older-than 0d",
        "export echo echo.out.py",
        "export latest latest.tar.zst",
        "thread rm latest",
        "import latest.tar.zst",
        "prune --older-than 0d",
        "schedule add echo @daily --name morning",
        "schedule show morning",
        "schedule disable morning",
        "schedule enable morning",
        "schedule install --print",
        "schedules",
        "due",
        "schedule rm morning",
        "remove echo",
    ):
        done = command(*words.split(), "--json")
        assert done.returncode in (0, 1, 3), (words, done.stderr)
        assert done.stdout, (words, done.stderr)
    with pytest.raises(AssertionError, match="does not fit"):
        check_document(["list", "--json"], '{"flows": [], "problems": [], "more": 1}')
