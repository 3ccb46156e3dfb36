"""Lines that show the tool calls of a thread's agents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from uncaged_bundles.clean import shorten

from .output import Piece, Styled

if TYPE_CHECKING:
    from uncaged_engine.threads.step_traces import StepTrace

NO_TRACES = "no agent of this thread called a tool, or its kind of agent does not say so"
ARGUMENT_COLUMNS = 100
RESULT_COLUMNS = 110


def trace_lines(traces: Iterable[StepTrace], *, full: bool) -> Iterator[list[Piece]]:
    """Yield the lines of traces: a line for each step, and two for each call.

    Args:
        full: show arguments and the kept part of results whole.
    """
    empty = True
    for trace in traces:
        empty = False
        yield [f"step {trace.seq}  ", Styled(trace.role, "bold"), f"  by {trace.agent}"]
        for call in trace.calls:
            yield from _call_lines(call, full=full)
        if trace.left_out:
            yield [f"      and {trace.left_out:,} more calls, which were not kept"]
    if empty:
        yield [NO_TRACES]


def _call_lines(call: Mapping[str, Any], *, full: bool) -> Iterator[list[Piece]]:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    duration = f"  {call['durationMs'] / 1000:.1f} s" if "durationMs" in call else ""
    failed = [Styled("  failed", "red")] if call["failed"] else []
    shown = arguments if full else shorten(arguments, ARGUMENT_COLUMNS)
    yield [f"{call['number']:>4}  {call['tool']} {shown}", *failed, duration]
    result = call.get("result")
    if result is None:
        return
    head = " ".join(str(result["head"]).split())
    more = f" … {result['characters']:,} characters" if result["characters"] > len(head) else ""
    yield [Styled(f"      → {head if full else shorten(head, RESULT_COLUMNS)}{more}", "dim")]
