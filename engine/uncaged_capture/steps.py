"""Steps of a captured flow: the kept calls of one role step, linked, with what each of them gave.

Task and block flows are made of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.records import dataclass, replace
from uncaged_engine.api import Engine, ThreadView
from uncaged_engine.door.outcomes import Outcome
from uncaged_engine.services.threads import StepTrace
from uncaged_engine.services.trials import TrialEffect, TrialResult

from .agent_calls import agent_calls
from .calls import texts_in
from .flow_calls import FlowThreads
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
from .own_calls import own_calls
from .recorded import recorded_outcome, result_differences
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
            if tried.effect.kind in ("flow", "llm") and not tried.effect.flows
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
    """Return the calls of flows that a thread's agent made, as steps; of a thread without agents
    those of flows and models that it made itself.

    Args:
        step: the role step; None if only one called flows. named: values by parameter name.
    Raises:
        NotFoundError: no step, or not this one, called flows. UsageError: several did, and none is
            named. RefusedError: the calls cannot be a flow; the message says why.
    """
    prompt = str(view.start.get("parameters", {}).get("prompt", ""))
    has_agents = bool(traces) or any("role" in record for record in view.records)
    found = agent_calls(engine, view, traces, step=step) if has_agents else own_calls(engine, view)
    for call in found.calls:
        _require_flow(engine, call)
    kept = found.calls
    parameters = _parameters(kept, prompt, named)
    if not named:
        parameters = named_by_arguments(kept, parameters)
    readers = {call.number for call in kept if only_reads(engine, call, found.threads)}
    repeated = repeated_calls(kept, readers)
    kept = tuple(call for call in kept if call.number not in repeated)
    linked, unused = needed_calls(link(kept, parameters), readers, found.answer)
    left_out = {
        **found.left_out,
        **{number: f"it repeats call {first}" for number, first in repeated.items()},
        **dict.fromkeys(unused, "it only reads, and nothing used its result"),
    }
    if not linked:
        raise RefusedError("no call is left that a flow needs")
    used = _used(linked, parameters)
    return FlowSteps(
        prompt=prompt,
        answer=_linked_answer(found.message, linked, used),
        calls=linked,
        left_out=tuple(
            f"{found.labels[number]}: {reason}" for number, reason in sorted(left_out.items())
        ),
        notes=(*_notes(engine, linked), *found.notes),
        parameters=used,
        threads=found.threads,
        result=result_call(linked, found.answer),
    )


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


def _notes(engine: Engine, linked: Sequence[LinkedCall]) -> list[str]:
    notes = []
    for step, call in enumerate(linked, 1):
        notes += [f"step {step}: {sentence}" for sentence in call.fixed]
        if call.ran.kind == "llm":
            notes.append(f"step {step}: a model may answer otherwise each time")
            continue
        now = engine.bundle(call.ran.flow).hash
        if call.ran.was and call.ran.was != now:
            notes.append(f"step {step}: {call.ran.flow} changed since (it was {call.ran.was})")
        if call.ran.result is None:
            notes.append(
                f"step {step}: only the begin of its result is known, so later steps cannot refer to it"
            )
    return notes


def _require_flow(engine: Engine, ran: RanFlow) -> None:
    """Refuse a call of a flow that was removed."""
    if ran.kind == "flow" and engine.registry.flow(ran.flow) is None:
        raise RefusedError(f"call {ran.number} ran the flow {ran.flow!r}, which was removed since")
