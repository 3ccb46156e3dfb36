"""Traces of a thread: the tool calls of the agents of its role steps, read from blobs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store

from ..journal.blobs import BlobDirectory

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
