"""Ids of traces and spans, derived from those of threads and steps, so that the spans of several
processes fit together.
"""

from __future__ import annotations

from _blake2 import blake2b

from uncaged_bundles.ids import decode_crockford


def trace_id(thread: str) -> int:
    """Return the id of a thread's trace: the 16 bytes of its ULID."""
    return decode_crockford(thread)


def thread_span_id(thread: str) -> int:
    """Return the id of the span of a whole thread, the root of its trace."""
    return _derived(thread)


def step_span_id(thread: str, seq: int, part: int | None = None) -> int:
    """Return the id of the span of a step, or of a part of one."""
    return _derived(_key(thread, seq, part))


def attempt_span_id(thread: str, seq: int, part: int | None, attempt: int) -> int:
    """Return the id of the span of one attempt at a step. attempt: from 1."""
    return _derived(f"{_key(thread, seq, part)}#{attempt}")


def traceparent(trace: int, span: int, flags: int) -> str:
    """Return the W3C header of a span."""
    return f"00-{trace:032x}-{span:016x}-{flags:02x}"


def _key(thread: str, seq: int, part: int | None) -> str:
    return f"{thread}/{seq}" if part is None else f"{thread}/{seq}.{part}"


def _derived(key: str) -> int:
    # zero is no id
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big") or 1
