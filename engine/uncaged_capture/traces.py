"""Choice of the role step of a thread whose trace is captured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_engine.services.threads import StepTrace

__all__ = ["answer_of", "only_step"]


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
