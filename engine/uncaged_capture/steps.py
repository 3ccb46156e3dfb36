"""Steps of a captured flow: the kept calls of one role step, linked, with what each of them gave.

Task and block flows are made of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError
from uncaged_bundles.records import dataclass, replace
from uncaged_engine.api import Engine, ThreadView
from uncaged_engine.door.outcomes import Outcome
from uncaged_engine.services.trials import TrialEffect, TrialResult
from uncaged_tools.flows import FlowTool

from .calls import FileLook, FlowCall, Other, TraceCall, WebRead, calls_of, texts_in
from .flow_calls import FlowThreads, flow_tools, gone_flows, ran_flow, shown_call
from .linking import (
    JoinedText,
    Linked,
    LinkedCall,
    RanFlow,
    chosen_in,
    link,
    link_text,
    references_in,
)
from .needed import needed_calls, only_reads, repeated_calls, result_call
from .recorded import recorded_outcome, result_differences
from .selecting import Dropped, select
from .traces import StepTrace
from .values import Parameter, parameters_of

__all__ = ["FlowSteps", "flow_steps"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,59}")
_LONGEST_ANSWER = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSteps:
    """What an agent did by calls of flows.

    prompt: of the thread. answer: of the agent, linked; None if it may hold values that are not of
    the results. threads: that the calls ran, by the number of the
    call. result: the number of the call whose result is that of the flow.
    """

    prompt: str
    answer: Linked
    calls: tuple[LinkedCall, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    threads: FlowThreads
    result: int

    def differences(self, found: TrialResult) -> list[str]:
        """Return how the results of the steps in a trial differ from the recorded ones."""
        outcomes = {
            tried.effect.seq: tried.outcome
            for tried in found.effects
            if tried.effect.kind == "flow" and not tried.effect.flows
        }
        lines: list[str] = []
        for step, call in enumerate(self.calls, 1):
            where = f"the result of step {step} ({call.ran.flow})"
            lines += result_differences(call.ran, outcomes.get(step), where)
        return lines

    def known(self, effect: TrialEffect) -> Outcome | None:
        """Return the recorded outcome of an effect inside a called flow, if the same one is in the
        thread of the recorded call; None for others, and for harmless ones.
        """
        if effect.harmless or len(effect.flows) != 1 or not 0 < effect.step <= len(self.calls):
            return None
        thread = self.threads.threads.get(self.calls[effect.step - 1].ran.number)
        return None if thread is None else recorded_outcome(thread, effect)


def flow_steps(
    engine: Engine,
    view: ThreadView,
    traces: Sequence[StepTrace],
    *,
    step: int | None,
    named: Mapping[str, str] | None = None,
) -> FlowSteps:
    """Return the calls of flows that a thread's agent made, as steps.

    Args:
        step: the role step; None if only one called flows. named: values by parameter name.
    Raises:
        NotFoundError: no step, or not this one, called flows. UsageError: several did, and none is
            named. RefusedError: the calls cannot be a flow; the message says why.
    """
    known = flow_tools(engine)
    trace = _chosen(traces, known, view, step)
    calls = calls_of(trace, flows={name: tool.flow for name, tool in known.items()})
    _refuse_gone(engine, view, trace, calls, known)
    prompt = str(view.start.get("parameters", {}).get("prompt", ""))
    message, answer = _answer(view, trace.seq)
    chosen = select(calls, answer=answer, prompt=prompt)
    # the ids in a stranger's archive may be those of threads that ran here
    imported = view.summary.imported
    threads = (
        FlowThreads(threads={}) if imported else FlowThreads.of(engine, view, trace, calls, known)
    )
    kept, dropped = [], list(chosen.dropped)
    for call in chosen.kept:
        if isinstance(call.action, FlowCall):
            kept.append(
                ran_flow(call, call.action, known[call.tool], threads.threads.get(call.number))
            )
        elif any(
            use.number == call.number and use.where is not None for use in chosen.uses
        ) or not (isinstance(call.action, FileLook | WebRead)):
            raise RefusedError(
                f"{shown_call(call)} is needed, and calls no flow: what the agent did is no task of flows alone"
            )
        else:
            dropped.append(Dropped(call=call, reason="it calls no flow"))
    parameters = _parameters(kept, prompt, named)
    if not named:
        parameters = named_by_arguments(kept, parameters)
    readers = {call.number for call in kept if only_reads(engine, call, threads)}
    by_number = {call.number: call for call in calls}
    repeated = repeated_calls(kept, readers)
    kept = [call for call in kept if call.number not in repeated]
    linked, unused = needed_calls(link(kept, parameters), readers, answer)
    dropped += [
        Dropped(call=by_number[number], reason=f"it repeats call {first}")
        for number, first in repeated.items()
    ]
    dropped += [
        Dropped(call=by_number[number], reason="it only reads, and nothing used its result")
        for number in unused
    ]
    if not linked:
        raise RefusedError("no call of a flow is left that a flow needs")
    used = _used(linked, parameters)
    return FlowSteps(
        prompt=prompt,
        answer=_linked_answer(message, linked, used),
        calls=linked,
        left_out=tuple(
            f"{shown_call(one.call)}: {one.reason}"
            for one in sorted(dropped, key=lambda one: one.call.number)
        ),
        notes=tuple(_notes(engine, linked, calls)),
        parameters=used,
        threads=threads,
        result=result_call(linked, answer),
    )


def _chosen(
    traces: Sequence[StepTrace], known: Mapping[str, FlowTool], view: ThreadView, step: int | None
) -> StepTrace:
    """Return the trace of the one role step that called flows."""
    found = [
        trace
        for trace in traces
        if (step is None or trace.seq == step)
        and any(str(call["tool"]) in known or _looks_like_flow(call, view) for call in trace.calls)
    ]
    thread = view.summary.thread_id
    if not found:
        where = f"thread {thread}" if step is None else f"step {step} of thread {thread}"
        raise NotFoundError(
            f"{where} called no flows; its tool calls: uncaged-workflow thread show {thread} --trace"
        )
    if len(found) > 1:
        seqs = ", ".join(str(trace.seq) for trace in found)
        raise UsageError(f"steps {seqs} of thread {thread} called flows; choose with --step")
    return found[0]


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


def _answer(view: ThreadView, seq: int) -> tuple[str, str]:
    """Return what the agent of a step answered to the person, and all of its answer."""
    for record in view.records:
        if record.get("seq") == seq and "role" in record:
            meta = record.get("meta", {})
            message = meta.get("message") if isinstance(meta, Mapping) else None
            content = str(record.get("content", ""))
            shown = message if isinstance(message, str) else content.strip()
            return shown, f"{content}\n{json.dumps(meta, ensure_ascii=False)}"
    return "", ""


def _linked_answer(
    message: str, calls: Sequence[LinkedCall], parameters: Sequence[Parameter]
) -> Linked:
    """Return an answer in which all values are those of results and parameters; None for others."""
    if len(message) > _LONGEST_ANSWER:
        return None
    linked = link_text(message, [call.ran for call in calls], parameters)
    if next(references_in(linked), None) is None:
        return None
    pieces = linked.pieces if isinstance(linked, JoinedText) else ()
    literal = "".join(piece for piece in pieces if isinstance(piece, str))
    return None if any(letter.isdigit() for letter in literal) else linked


def _parameters(
    calls: Sequence[RanFlow], prompt: str, named: Mapping[str, str] | None
) -> tuple[Parameter, ...]:
    texts = [text for call in calls for text in (call.prompt, *texts_in(dict(call.params)))]
    return parameters_of(texts, prompt, named)


def named_by_arguments(
    calls: Sequence[RanFlow], parameters: Sequence[Parameter]
) -> tuple[Parameter, ...]:
    """Return the parameters with the name of the first argument whose whole value they are."""
    names = {one.name for one in parameters}
    found: list[Parameter] = []
    for parameter in parameters:
        name = next(
            (
                argument
                for call in calls
                for argument, value in call.params.items()
                if str(value) == parameter.value and not isinstance(value, bool)
            ),
            "",
        )
        if name == parameter.name or parameter.secret or not _NAME.fullmatch(name):
            found.append(parameter)
            continue
        free, number = name, 1
        while free in names:
            number += 1
            free = f"{name}{number}"
        names.add(free)
        found.append(replace(parameter, name=free))
    return tuple(found)


def _used(calls: Sequence[LinkedCall], parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters that a call uses, in the order of their first use."""
    found: dict[str, Parameter] = {}
    for call in calls:
        for chosen in chosen_in([call.prompt, *call.params.values()]):
            found[chosen.parameter.name] = chosen.parameter
    return tuple(one for name, one in found.items() if one in parameters)


def _notes(engine: Engine, linked: Sequence[LinkedCall], calls: Sequence[TraceCall]) -> list[str]:
    notes = []
    for step, call in enumerate(linked, 1):
        notes += [f"step {step}: {sentence}" for sentence in call.fixed]
        now = engine.bundle(call.ran.flow).hash
        if call.ran.was and call.ran.was != now:
            notes.append(f"step {step}: {call.ran.flow} changed since (it was {call.ran.was})")
        if call.ran.result is None:
            notes.append(
                f"step {step}: only the begin of its result is known, so later steps cannot refer to it"
            )
    if any(call.characters < 0 for call in calls):
        notes.append("the agent's protocol says no results, so nothing refers to one")
    return notes
