"""Calls of tools in the output of coding programs, as they come into the trace of a step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from uncaged_agents.program.output_parser import OutputReader
from uncaged_agents.program.table import table
from uncaged_capture.calls import Command, FileEdit, calls_of
from uncaged_engine.door.traces import AgentTrace
from uncaged_engine.services.threads import StepTrace


def trace_of(program: str, *events: Mapping[str, object]) -> StepTrace:
    reader = OutputReader(table()[program], lambda _fields: None)
    for event in events:
        reader(json.dumps(event).encode() + b"\n")
    trace = AgentTrace()
    reader.calls.keep(trace)
    document: Mapping[str, Any] = trace.document()
    return StepTrace(
        seq=1, role="r", agent="m", calls=tuple(document["calls"]), left_out=0, notes={}
    )


def used(number: str, name: str, **arguments: object) -> dict[str, object]:
    item = {"type": "tool_use", "id": number, "name": name, "input": arguments}
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": "x"}, item]}}


def resulted(number: str, content: object, *, error: bool = False) -> dict[str, object]:
    item = {
        "type": "tool_result",
        "tool_use_id": number,
        "content": content,
        **({"is_error": True} if error else {}),
    }
    return {"type": "user", "message": {"content": [item]}}


def test_calls_of_claude_code_have_arguments_and_results() -> None:
    """Results come later and in any order; a failed call has its message."""
    trace = trace_of(
        "claude",
        used("t1", "Bash", command="wc -l a", description="count"),
        used("t2", "Edit", file_path="/w/a", old_string="x", new_string="y"),
        resulted("t2", [{"type": "text", "text": "String not found"}], error=True),
        resulted("t1", "3 a"),
        resulted("t9", "of no call"),
    )
    one, other = calls_of(trace, top="/w")
    assert (one.action, one.output, one.failure) == (Command(text="wc -l a"), "3 a", "")
    assert other.action == FileEdit(path="a", old="x", new="y")
    assert other.failure == "String not found"


def test_calls_of_codex_have_their_whole_command() -> None:
    """The shell that it starts is unwrapped; an exit code other than 0 is a failure."""
    command = "bash -lc 'grep -c \"a  b\" log | tail -1'"
    item = {"id": "i1", "type": "command_execution", "command": command}
    bad = {"id": "i2", "type": "command_execution", "command": "cat x", "exit_code": 1}
    trace = trace_of(
        "codex",
        {"type": "item.started", "item": {**item, "status": "in_progress"}},
        {"type": "item.completed", "item": {**item, "aggregated_output": "4\n", "exit_code": 0}},
        {"type": "item.completed", "item": {**bad, "aggregated_output": "no such file"}},
    )
    one, other = calls_of(trace)
    assert one.action == Command(text='grep -c "a  b" log | tail -1')
    assert (one.output, one.failure) == ("4\n", "")
    assert other.failure == "no such file"


def test_a_program_without_rules_has_the_calls_that_it_shows() -> None:
    """Their names only, of which no flow is made."""
    assert trace_of("gemini-headless").calls == ()
