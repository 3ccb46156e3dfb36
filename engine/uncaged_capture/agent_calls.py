"""Calls of flows that the agent of a role step made, read from its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncaged_bundles.errors import RefusedError
from uncaged_engine.api import Engine, ThreadView
from uncaged_engine.services.threads import StepTrace
from uncaged_tools.flows import FlowTool

from .calls import FileLook, FlowCall, Other, TraceCall, WebRead, calls_of
from .flow_calls import FlowThreads, flow_tools, gone_flows, ran_flow, shown_call
from .performed import PerformedCalls
from .selecting import select
from .traces import answer_of, only_step

__all__ = ["agent_calls"]


def agent_calls(
    engine: Engine, view: ThreadView, traces: Sequence[StepTrace], *, step: int | None
) -> PerformedCalls:
    """Return the calls of flows in a trace, with what of it is left out.

    Raises:
        NotFoundError, UsageError, RefusedError: as for `flow_steps`.
    """
    known = flow_tools(engine)
    trace = _chosen(traces, known, view, step)
    calls = calls_of(trace, flows={name: tool.flow for name, tool in known.items()})
    _refuse_gone(engine, view, trace, calls, known)
    prompt = str(view.start.get("parameters", {}).get("prompt", ""))
    message, answer = answer_of(view.records, trace.seq)
    chosen = select(calls, answer=answer, prompt=prompt)
    # the ids in a stranger's archive may be those of threads that ran here
    imported = view.summary.imported
    threads = (
        FlowThreads(threads={}) if imported else FlowThreads.of(engine, view, trace, calls, known)
    )
    kept = []
    left_out = {one.call.number: one.reason for one in chosen.dropped}
    for call in chosen.kept:
        if isinstance(call.action, FlowCall):
            thread = threads.threads.get(call.number)
            kept.append(ran_flow(call, call.action, known[call.tool], thread))
        elif any(
            use.number == call.number and use.where is not None for use in chosen.uses
        ) or not isinstance(call.action, FileLook | WebRead):
            raise RefusedError(
                f"{shown_call(call)} is needed, and calls no flow: what the agent did is no task of flows alone"
            )
        else:
            left_out[call.number] = "it calls no flow"
    silent = any(call.characters < 0 for call in calls)
    return PerformedCalls(
        calls=tuple(kept),
        threads=threads,
        left_out=left_out,
        labels={call.number: shown_call(call) for call in calls},
        message=message,
        answer=answer,
        notes=("the agent's protocol says no results, so nothing refers to one",) if silent else (),
    )


def _chosen(
    traces: Sequence[StepTrace], known: Mapping[str, FlowTool], view: ThreadView, step: int | None
) -> StepTrace:
    """Return the trace of the one role step that called flows."""
    return only_step(
        traces,
        lambda trace: any(
            str(call["tool"]) in known or _looks_like_flow(call, view) for call in trace.calls
        ),
        step=step,
        thread=view.summary.thread_id,
        did="called flows",
        did_not="called no flows",
    )


def _looks_like_flow(call: Mapping[str, object], view: ThreadView) -> bool:
    """Tell whether a call has a result as flows give it, perhaps of one that is gone."""
    result = call.get("result")
    head = str(result.get("head", "")) if isinstance(result, Mapping) else ""
    has_roles = any("role" in record for record in view.records)
    return has_roles and head.startswith('{"success":') and '"message":' in head


def _refuse_gone(
    engine: Engine,
    view: ThreadView,
    trace: StepTrace,
    calls: Sequence[TraceCall],
    known: Mapping[str, FlowTool],
) -> None:
    """Refuse a trace with a call of a flow that is no tool any more."""
    strange = [call for call in calls if isinstance(call.action, Other) and not call.failure]
    if not strange:
        return
    gone = gone_flows(engine, view, trace.seq, known)
    by_name = {name.replace(" ", "_"): name for name in gone}
    for call in strange:
        tool = call.tool.removeprefix("mcp__uncaged-workflow__")
        if tool in by_name:
            raise RefusedError(
                f"call {call.number} ran the flow {by_name[tool]!r}, which was removed or disabled since"
            )
