"""Calls of traces by what they did, for each kind of agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from testbed.traced_calls import ran, traced, wrote
from uncaged_capture.calls import (
    Action,
    Command,
    FileEdit,
    FileLook,
    FileWrite,
    FlowCall,
    Other,
    WebRead,
    calls_of,
)
from uncaged_engine.door.traces import AgentTrace
from uncaged_engine.services.threads import StepTrace


def action_of(
    tool: str, arguments: object, kind: str = "", top: str = "/work", **flows: str
) -> Action:
    trace = AgentTrace()
    trace.add(tool, arguments, "", kind=kind)
    document: Mapping[str, Any] = trace.document()
    step = StepTrace(
        seq=1, role="r", agent="m", calls=tuple(document["calls"]), left_out=0, notes={}
    )
    return calls_of(step, flows=flows, top=top)[0].action


@pytest.mark.parametrize(
    ("tool", "kind", "arguments", "wanted"),
    [
        ("run", "", {"command": "ls"}, Command(text="ls")),
        ("run", "", {"command": "ls", "timeoutSeconds": "9"}, Command(text="ls")),
        ("read", "", {"path": "a"}, FileLook(path="a", whole=True)),
        ("read", "", {"path": "a", "offset": 3}, FileLook(path="a")),
        ("list", "", {}, FileLook(path=".")),
        ("search", "", {"pattern": "x", "path": "src"}, FileLook(path="src")),
        ("edit", "", {"path": "a", "old": "x", "new": "y"}, FileEdit(path="a", old="x", new="y")),
        (
            "edit",
            "",
            {"path": "a", "old": "x", "new": "y", "all": True},
            FileEdit(path="a", old="x", new="y", everywhere=True),
        ),
        ("write", "", {"path": "a", "text": "x"}, FileWrite(path="a", text="x")),
        ("Bash", "", {"command": "ls", "description": "look"}, Command(text="ls")),
        (
            "Edit",
            "",
            {"file_path": "/work/a", "old_string": "x", "new_string": "y"},
            FileEdit(path="a", old="x", new="y"),
        ),
        ("Write", "", {"file_path": "/work/b/a", "content": "x"}, FileWrite(path="b/a", text="x")),
        (
            "WebFetch",
            "",
            {"url": "https://a.test", "prompt": "?"},
            WebRead(address="https://a.test"),
        ),
        ("`ls`", "execute", {"command": ["bash", "-lc", "ls"]}, Command(text="ls")),
        (
            "ls",
            "execute",
            {"command": "cat /work/a", "cwd": "/work/src"},
            Command(text="cat ./a", directory="src"),
        ),
        (
            "Edit a",
            "edit",
            {"filePath": "/work/a", "oldString": "x", "newString": "y", "replaceAll": False},
            FileEdit(path="a", old="x", new="y"),
        ),
        ("Read a", "read", {"absolute_path": "/work/a"}, FileLook(path="a")),
        ("stories", "", {"prompt": "x"}, FlowCall(flow="top-stories", arguments={"prompt": "x"})),
    ],
)
def test_a_call_of_a_known_tool(tool: str, kind: str, arguments: object, wanted: Action) -> None:
    """Tools of models, of Claude Code, and kinds of the Agent Client Protocol."""
    assert action_of(tool, arguments, kind, stories="top-stories") == wanted


@pytest.mark.parametrize(
    ("tool", "kind", "arguments"),
    [
        ("run", "", {"command": "ls", "sudo": True}),
        ("run", "", {"command": 3}),
        ("run", "", "ls"),
        ("exec", "", {"command": "ls"}),
        ("edit", "", {"path": "a", "old": "x"}),
        ("edit", "", {"path": "a", "old": "x", "new": "y", "all": "yes"}),
        ("ls -la", "", {}),
        ("x", "execute", {"command": ["python", "-c", "print()"]}),
        ("write", "", {"path": "a", "text": "x" * 5000}),
        ("extract", "", {"text": "x", "schema": {}}),
    ],
)
def test_an_unknown_call_is_never_guessed_at(tool: str, kind: str, arguments: object) -> None:
    """Other names, other arguments, other types, and arguments that were cut."""
    assert isinstance(action_of(tool, arguments, kind), Other)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("cd /work && cat '/work/a' /work2 x/work", "cd . && cat './a' /work2 x/work"),
        ("ls /work", "ls ."),
        ("echo /workspace /work-2", "echo /workspace /work-2"),
    ],
)
def test_the_own_directory_is_relative_in_a_command(text: str, wanted: str) -> None:
    """Another directory with the same beginning stays as it is."""
    assert action_of("run", {"command": text}) == Command(text=wanted)


def test_output_and_failure_of_a_command() -> None:
    """The line with the exit code is no part of the output; another code than 0 is a failure."""
    good, bad, long = traced(ran("ls", "a\n"), ran("cat x", "", 1), ran("cat y", "z" * 900))
    assert (good.output, good.failure, good.is_whole) == ("a\n", "", True)
    assert bad.failure == "exit code 1"
    assert not long.is_whole
    assert long.characters == len("[exit code 0]\n") + 900


def test_a_call_that_failed_says_why() -> None:
    """The message of the tool."""
    trace = AgentTrace()
    trace.add("read", {"path": "a"}, "there is no file 'a'", failed=True)
    document: Mapping[str, Any] = trace.document()
    step = StepTrace(
        seq=1, role="r", agent="m", calls=tuple(document["calls"]), left_out=0, notes={}
    )
    assert calls_of(step)[0].failure == "there is no file 'a'"
    assert traced(wrote("a", "x"))[0].failure == ""
