"""Comparison of the steps of two threads."""

from __future__ import annotations

from typing import Any

import pytest
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_engine.api import ThreadSummary, ThreadView
from uncaged_engine.threads.parting import common_steps, steps_of

STEP: dict[str, Any] = {
    "seq": 1,
    "role": "coder",
    "content": "done",
    "meta": {"status": "done"},
    "usage": {"outputTokens": 1},
    "snapshot": "a" * 40,
    "timestamp": 1,
}


def thread(**changes: object) -> ThreadView:
    """Return a thread with one step."""
    summary = ThreadSummary(
        thread_id=ThreadId("01HX5WBE00AAAAAAAAAAAAAAAA"),
        hash=BundleHash("EYHPV6X8XHTCS"),
        name="x",
        status="completed",
        steps=1,
        started_ms=0,
        updated_ms=1,
        message="",
    )
    return ThreadView(summary=summary, start={}, records=[{**STEP, **changes}], end=None)


@pytest.mark.parametrize(
    ("key", "value", "common"),
    [
        ("timestamp", 2, 1),
        ("usage", {"outputTokens": 2}, 1),
        ("snapshot", "b" * 40, 1),
        ("content", "other", 0),
        ("meta", {"status": "failed"}, 0),
    ],
)
def test_equal_steps_may_differ_in_time_usage_and_snapshot(
    key: str, value: object, common: int
) -> None:
    """Only the answer of a step and its data decide whether two threads have it in common."""
    assert common_steps([steps_of(thread()), steps_of(thread(**{key: value}))]) == common
