"""Traces of a thread: what the agents of its role steps did."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.errors import DamagedError, NotFoundError, UsageError
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.blobs import BlobDirectory

__all__ = ["StepTrace", "answer_of", "only_step", "traces_of"]

OWN_KEYS = ("format", "calls", "leftOut")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTrace:
    """Trace of one role step. calls: in order, as `uncaged_engine.door.traces` writes them.
    left_out: number of calls beyond the limit. notes: what the tools know beside their calls.
    """

    seq: int
    role: str
    agent: str
    calls: tuple[Mapping[str, Any], ...]
    left_out: int
    notes: Mapping[str, Any]

    def document(self) -> dict[str, object]:
        """Return the trace as JSON data."""
        return {
            "seq": self.seq,
            "role": self.role,
            "agent": self.agent,
            "calls": [dict(call) for call in self.calls],
            "leftOut": self.left_out,
        }


def traces_of(store: Store, records: Iterable[Mapping[str, Any]]) -> list[StepTrace]:
    """Return the traces that the records of a thread name, in the order of its steps. The records
    may come from a stranger's archive.

    Raises:
        NotFoundError: a trace is not in this store, as with an imported thread. DamagedError: a
            record names a blob that is no trace.
    """
    found = []
    for record in records:
        if "seq" not in record:
            continue  # the end of a failed thread has an error with a trace of Python
        holder = record if "role" in record else record.get("error")
        if isinstance(holder, Mapping) and isinstance(holder.get("trace"), str):
            found.append(_read(store, int(record["seq"]), holder))
    return found


def only_step(
    traces: Iterable[StepTrace],
    fits: Callable[[StepTrace], bool],
    *,
    step: int | None,
    thread: str,
    did: str,
    did_not: str,
) -> StepTrace:
    """Return the trace of the one role step that fits.

    Args:
        step: the role step; None if only one fits. thread: id of the thread. did, did_not: what
            such steps did, and others did not, for messages.
    Raises:
        NotFoundError: no step, or not this one, fits. UsageError: several do, and none is named.
    """
    found = [trace for trace in traces if (step is None or trace.seq == step) and fits(trace)]
    if not found:
        where = f"thread {thread}" if step is None else f"step {step} of thread {thread}"
        raise NotFoundError(
            f"{where} {did_not}; its tool calls: uncaged-workflow thread show {thread} --trace"
        )
    if len(found) > 1:
        seqs = ", ".join(str(trace.seq) for trace in found)
        raise UsageError(f"steps {seqs} of thread {thread} {did}; choose with --step")
    return found[0]


def answer_of(records: Iterable[Mapping[str, Any]], seq: int) -> tuple[str, str]:
    """Return what the agent of a step answered to the person, and all of its answer, data
    included; two empty texts without one.
    """
    for record in records:
        if record.get("seq") == seq and "role" in record:
            meta = record.get("meta", {})
            message = meta.get("message") if isinstance(meta, Mapping) else None
            content = str(record.get("content", ""))
            shown = message if isinstance(message, str) else content.strip()
            return shown, f"{content}\n{json.dumps(meta, ensure_ascii=False)}"
    return "", ""


def _read(store: Store, seq: int, holder: Mapping[str, Any]) -> StepTrace:
    try:
        data = BlobDirectory(store.blobs).get(holder["trace"])
    except DamagedError as exc:
        raise NotFoundError(f"the trace of step {seq} is not in this store: {exc}") from exc
    path: shapes.Path = ("trace",)
    try:
        document = shapes.mapping(json.loads(data), path)
        calls = shapes.items(document.get("calls"), (*path, "calls"))
        return StepTrace(
            seq=seq,
            role=str(holder.get("role", "")),
            agent=str(holder.get("by", "")),
            calls=tuple(_call(one, (*path, "calls", at)) for at, one in enumerate(calls)),
            left_out=shapes.whole(document.get("leftOut", 0), (*path, "leftOut")),
            notes={key: value for key, value in document.items() if key not in OWN_KEYS},
        )
    except (ValueError, RecursionError, shapes.ShapeError) as exc:
        raise DamagedError(f"the blob that step {seq} names is no trace: {exc}") from exc


def _call(value: object, path: shapes.Path) -> Mapping[str, Any]:
    """Return a call whose keys are those that readers use, checked."""
    call = shapes.mapping(value, path)
    shapes.whole(call.get("number"), (*path, "number"))
    shapes.text(call.get("tool"), (*path, "tool"))
    shapes.truth(call.get("failed"), (*path, "failed"))
    shapes.required(call, "arguments", path)
    shapes.number(call.get("durationMs", 0), (*path, "durationMs"))
    shapes.text(call.get("kind", ""), (*path, "kind"))
    if "result" in call:
        result = shapes.mapping(call["result"], (*path, "result"))
        shapes.text(result.get("head"), (*path, "result", "head"))
        shapes.whole(result.get("characters"), (*path, "result", "characters"))
        shapes.text(result.get("digest", ""), (*path, "result", "digest"))
    return call
