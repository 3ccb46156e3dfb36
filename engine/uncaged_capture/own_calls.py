"""Calls of flows and models that a thread's own bundle made, read from its journal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_engine.api import Engine, ThreadView
from uncaged_engine.door.effects import handled

from .flow_calls import FlowThreads, thread_of
from .linking import RanFlow, Recorded
from .performed import PerformedCalls
from .recorded import model_result

__all__ = ["own_calls"]

_MODEL_KEYS = frozenset({"prompt", "input", "schema", "model"})
_PURE = frozenset({"now", "null", "output", "catalog"})
"""Effects that a captured flow does without."""


def own_calls(engine: Engine, view: ThreadView) -> PerformedCalls:
    """Return the calls of flows and models among the steps of a thread.

    Raises:
        NotFoundError: there is none. RefusedError: another step acts, or a call has settings that a
            task cannot say.
    """
    calls: list[RanFlow] = []
    threads: dict[int, ThreadView] = {}
    left_out: dict[int, str] = {}
    labels: dict[int, str] = {}
    for number, (seq, kind, body, line) in enumerate(_effects(view), 1):
        labels[number] = f"step {seq}, {kind}"
        if kind in _PURE:
            left_out[number] = "it is no call of a flow or a model"
            continue
        if kind not in ("flow", "llm"):
            raise RefusedError(
                f"step {seq} is {kind}: a captured task calls flows and models only; {_repeated(view)}"
            )
        if "error" in line:
            left_out[number] = f"it failed: {line['error'].get('message', '')}"
            continue
        outcome = line.get("outcome")
        if kind == "llm":
            calls.append(_asked_model(number, body, outcome))
            continue
        if not isinstance(outcome, Mapping) or outcome.get("success") is False:
            left_out[number] = "it had no success"
            continue
        calls.append(_ran(number, body, outcome))
        thread = (
            None
            if view.summary.imported
            else thread_of(engine, outcome.get("threadId"), calls[-1].flow)
        )
        if thread is not None:
            threads[number] = thread
    if not calls:
        raise NotFoundError(
            f"thread {view.summary.thread_id} called no flow and no model; {_repeated(view)}"
        )
    result = view.end.get("result") if view.end is not None else None
    fields = result if isinstance(result, Mapping) else {}
    message = str(fields.get("message") or "")
    return PerformedCalls(
        calls=tuple(calls),
        threads=FlowThreads(threads=threads),
        left_out=left_out,
        labels=labels,
        message=message,
        answer=f"{message}\n{json.dumps(fields.get('data'), ensure_ascii=False)}",
    )


def _repeated(view: ThreadView) -> str:
    """Return what to do with a thread of which nothing is captured."""
    run = f"uncaged-workflow run {view.summary.name}"
    return f"no agent worked in this thread, so its flow repeats it without one: {run}"


def _effects(view: ThreadView) -> Iterator[tuple[int, str, Mapping[str, Any], Mapping[str, Any]]]:
    """Yield seq, kind, body and the line of the outcome of each effect; of an effect of several its
    parts.
    """
    lines = {
        (int(record["seq"]), record.get("sub")): record
        for record in view.records
        if "outcome" in record or ("error" in record and "seq" in record)
    }
    for record in view.records:
        intent = record.get("intent")
        if not isinstance(intent, Mapping) or len(intent) != 1:
            continue
        seq = int(record["seq"])
        [(kind, body)] = intent.items()
        found: list[tuple[int | None, str, object]] = [(None, str(kind), body)]
        if kind == "all" and isinstance(body, Mapping):
            parts = [one for one in body.get("effects", []) if isinstance(one, Mapping) and one]
            found = [(at, *next(iter(one.items()))) for at, one in enumerate(parts)]
        for part, name, inner in found:
            bare = handled(inner)
            if (seq, part) in lines:
                yield seq, name, bare if isinstance(bare, Mapping) else {}, lines[seq, part]


def _ran(number: int, body: Mapping[str, Any], outcome: Mapping[str, Any]) -> RanFlow:
    return RanFlow(
        number=number,
        flow=str(body.get("name", "")),
        prompt=str(body.get("prompt") or ""),
        params=dict(body.get("params") or {}),
        result=Recorded(text=str(outcome.get("message") or ""), data=outcome.get("data")),
        was=str(outcome.get("hash") or ""),
    )


def _asked_model(number: int, body: Mapping[str, Any], outcome: object) -> RanFlow:
    if strange := sorted(set(body) - _MODEL_KEYS):
        raise RefusedError(
            f"call {number} of a model sets {', '.join(strange)}, which a task cannot"
        )
    return RanFlow(
        number=number,
        kind="llm",
        flow="answer",
        prompt=str(body.get("prompt", "")),
        params={name: value for name, value in body.items() if name != "prompt"},
        result=model_result(outcome),
    )
