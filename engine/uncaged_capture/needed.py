"""Calls of flows that a captured flow needs: those that act, and those whose results are used."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from uncaged_engine.api import Engine

from .calls import texts_in
from .flow_calls import FlowThreads
from .linking import LinkedCall, RanFlow, references_in
from .selecting import occurs, values_in

__all__ = ["needed_calls", "only_reads", "repeated_calls", "result_call"]

_ONLY_READS = frozenset({"fetch", "search", "llm", "now", "null", "catalog"})
"""Effects with which a flow changes nothing."""
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def only_reads(engine: Engine, ran: RanFlow, threads: FlowThreads) -> bool:
    """Tell whether a call of a flow changed nothing, by what its thread did, else by what the flow
    may do.
    """
    if ran.kind == "llm":
        return True
    thread = threads.threads.get(ran.number)
    if thread is None:
        return _ONLY_READS.issuperset(engine.bundle(ran.flow).descriptor.policy.limits)
    intents = [record["intent"] for record in thread.records if "intent" in record]
    return all(_reads(intent) for intent in intents)


def _reads(intent: object) -> bool:
    """Tell whether an effect changes nothing."""
    if not isinstance(intent, Mapping) or len(intent) != 1:
        return False
    [(kind, body)] = intent.items()
    if kind == "http" and isinstance(body, Mapping):
        return str(body.get("method", "GET")).upper() in _SAFE_METHODS
    return kind in _ONLY_READS


def repeated_calls(calls: Sequence[RanFlow], readers: Collection[int]) -> dict[int, int]:
    """Return the calls that asked the same as an earlier one, with the numbers of both, if nothing
    but reading flows ran between them.
    """
    found: dict[int, int] = {}
    first: dict[str, int] = {}
    for call in calls:
        if call.number not in readers:
            first.clear()
            continue
        key = json.dumps([call.flow, call.prompt, call.params], sort_keys=True)
        earlier = first.setdefault(key, call.number)
        if earlier != call.number:
            found[call.number] = earlier
    return found


def needed_calls(
    calls: Sequence[LinkedCall], readers: Collection[int], answer: str
) -> tuple[tuple[LinkedCall, ...], tuple[int, ...]]:
    """Return the calls that are needed, and the numbers of those of reading flows whose result
    neither a needed call nor the answer uses.
    """
    needed: list[LinkedCall] = []
    unused: list[int] = []
    used: set[int] = set()
    for at, call in reversed(list(enumerate(calls))):
        number = call.ran.number
        is_last = at == len(calls) - 1
        if not (is_last or number in used or number not in readers or _is_in(call.ran, answer)):
            unused.append(number)
            continue
        needed.append(call)
        used.update(one.number for one in references_in([call.prompt, *call.params.values()]))
    return tuple(reversed(needed)), tuple(reversed(unused))


def _is_in(ran: RanFlow, answer: str) -> bool:
    """Tell whether the answer has text of a call's result."""
    texts = [ran.head] if ran.result is None else [ran.result.text, *texts_in(ran.result.data)]
    return any(occurs(value, answer) for text in texts for value in values_in(text))


def result_call(calls: Sequence[LinkedCall], answer: str) -> int:
    """Return the call whose result is that of the flow: the last that the answer shows."""
    shown = [call.ran.number for call in calls if _is_in(call.ran, answer)]
    return shown[-1] if shown else calls[-1].ran.number
