"""Calls of flows in a thread, with their results in full where the called threads are in this
store.

A trace has the first 400 characters of a result. The thread of a call is found by its id, which is
derived from the role's step and the call; one that was imported proves nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError, UncagedError
from uncaged_bundles.ids import ThreadId, is_thread_id
from uncaged_bundles.records import dataclass
from uncaged_engine.api import Engine, ThreadView
from uncaged_engine.door.children import derived_id
from uncaged_engine.services.threads import StepTrace
from uncaged_tools.flows import FlowTool, result_of_thread, split, tools

from .calls import FlowCall, TraceCall
from .linking import RanFlow, Recorded

__all__ = ["FlowThreads", "flow_tools", "gone_flows", "ran_flow", "shown_call", "thread_of"]

_MCP = "mcp__uncaged-workflow__"
"""Prefix that coding programs give to the tools of this engine's MCP server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowThreads:
    """Threads that the calls of one role step ran, by the numbers of the calls."""

    threads: Mapping[int, ThreadView]

    @classmethod
    def of(
        cls,
        engine: Engine,
        view: ThreadView,
        trace: StepTrace,
        calls: Sequence[TraceCall],
        known: Mapping[str, FlowTool],
    ) -> FlowThreads:
        """Find the threads of a trace's calls. One that was removed or imported is left out."""
        intended_ms = next(
            (
                int(record["timestamp"])
                for record in view.records
                if record.get("seq") == trace.seq and "intent" in record
            ),
            None,
        )
        found: dict[int, ThreadView] = {}
        seen: Counter[str] = Counter()
        for call in calls:
            if not isinstance(call.action, FlowCall):
                continue
            ids: list[object] = [_named(call)]
            text = _text(call, known)
            if text and intended_ms is not None:
                seen[text] += 1
                key = f"{view.summary.thread_id}/{trace.seq}/{seen[text]}/{text}"
                ids.append(derived_id(key, intended_ms))
            for id in ids:
                thread = thread_of(engine, id, call.action.flow)
                if thread is not None:
                    found[call.number] = thread
                    break
        return cls(threads=found)


def flow_tools(engine: Engine) -> dict[str, FlowTool]:
    """Return the flows of the store by the names under which agents may have called them."""
    found: dict[str, FlowTool] = {}
    for tool in tools(engine):
        found[tool.name] = found[f"{_MCP}{tool.name}"] = tool
    return found


def gone_flows(
    engine: Engine, view: ThreadView, seq: int, known: Mapping[str, FlowTool]
) -> list[str]:
    """Return the names of the flows that a step ran and that are no tools any more, sorted."""
    present = {tool.flow for tool in known.values()}
    parent = {"threadId": view.summary.thread_id, "seq": seq}
    found = set()
    for summary in engine.threads():
        if summary.name not in present and not summary.imported and summary.name:
            start = engine.thread(summary.thread_id).start.get("parent")
            if isinstance(start, Mapping) and {key: start.get(key) for key in parent} == parent:
                found.add(summary.name)
    return sorted(found)


def ran_flow(
    call: TraceCall, action: FlowCall, tool: FlowTool, thread: ThreadView | None
) -> RanFlow:
    """Return a call of a flow as data.

    Raises:
        RefusedError: it has arguments that the flow does not take any more.
    """
    try:
        prompt, params = split(tool, action.arguments)
    except UncagedError as exc:
        raise RefusedError(f"call {call.number}: {exc}; the flow changed since") from exc
    recorded = None if thread is None else _recorded(thread)
    return RanFlow(
        number=call.number,
        flow=tool.flow,
        prompt=prompt,
        params=params,
        result=recorded or _whole(call),
        head=call.output,
        characters=call.characters,
        digest=call.digest,
        was="" if thread is None else str(thread.summary.hash),
    )


def shown_call(call: TraceCall) -> str:
    """Return a call in a few words."""
    name = call.action.flow if isinstance(call.action, FlowCall) else call.tool
    return f"call {call.number}, {name}"


def _text(call: TraceCall, known: Mapping[str, FlowTool]) -> str:
    """Return the text from which the id of a call's thread is derived; "" if there is none."""
    action = call.action
    if not isinstance(action, FlowCall) or call.tool not in known:
        return ""
    try:
        prompt, params = split(known[call.tool], action.arguments)
    except UncagedError:
        return ""
    return json.dumps({"name": action.flow, "prompt": prompt, "params": params}, sort_keys=True)


def _named(call: TraceCall) -> object:
    """Return the thread that a result of the MCP server names."""
    try:
        document = json.loads(call.output) if call.is_whole else None
    except ValueError:
        return None
    return document.get("threadId") if isinstance(document, dict) else None


def thread_of(engine: Engine, id: object, flow: str) -> ThreadView | None:
    """Return a thread of the store that ran a flow with success; None if *id* names no such."""
    if not isinstance(id, str) or not is_thread_id(id) or not engine.has_thread(ThreadId(id)):
        return None
    try:
        found = engine.thread(id)
    except (NotFoundError, DamagedError):
        return None
    summary = found.summary
    return found if not summary.imported and summary.name == flow and summary.success else None


def _recorded(thread: ThreadView) -> Recorded:
    summary = thread.summary
    result = result_of_thread(summary.thread_id, summary.status, summary.message, thread.end)
    return Recorded(text=result.message, data=_raw_data(thread.end, result.data))


def _raw_data(end: Mapping[str, Any] | None, data: object) -> object:
    """Return the data as the effect `flow` has them: of a direct output the data around it."""
    found = end.get("result") if end is not None else None
    return found.get("data") if isinstance(found, Mapping) else data


def _whole(call: TraceCall) -> Recorded | None:
    """Return the result that the trace has in full, as the tools of models give it."""
    if not call.is_whole:
        return None
    try:
        document = json.loads(call.output)
    except ValueError:
        return None
    if not isinstance(document, dict) or not {"success", "message", "data"} <= document.keys():
        return None
    return Recorded(text=str(document["message"] or ""), data=document["data"])
