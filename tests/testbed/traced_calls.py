"""Traces with calls of agents, as the engine writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from uncaged_capture.calls import TraceCall, calls_of
from uncaged_engine.door.traces import AgentTrace
from uncaged_engine.services.threads import StepTrace


def ran(command: str, output: str = "", code: int = 0) -> tuple[str, object, str]:
    """A call of the tool `run`."""
    return "run", {"command": command}, f"[exit code {code}]\n{output}"


def wrote(path: str, text: str) -> tuple[str, object, str]:
    return "write", {"path": path, "text": text}, f"{path} made, 1 lines"


def edited(path: str, old: str, new: str) -> tuple[str, object, str]:
    arguments = {"path": path, "old": old, "new": new}
    return "edit", arguments, f"{path}: 1 passage replaced"


def trace_of(*calls: tuple[str, object, str], seq: int = 1) -> StepTrace:
    trace = AgentTrace()
    for tool, arguments, result in calls:
        trace.add(tool, arguments, result, duration_ms=3)
    document = cast("Mapping[str, Any]", trace.document())
    return StepTrace(
        seq=seq, role="coder", agent="m", calls=tuple(document["calls"]), left_out=0, notes={}
    )


def traced(*calls: tuple[str, object, str], top: str = "") -> tuple[TraceCall, ...]:
    return calls_of(trace_of(*calls), top=top)
