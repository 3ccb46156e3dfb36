"""Final status of a followed thread."""

from __future__ import annotations

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_cli.display.follow import with_final_status
from uncaged_engine.api import ThreadSummary, ThreadView
from uncaged_engine.state.states import State


def summary(status: State, updated_ms: int) -> ThreadSummary:
    return ThreadSummary(
        thread_id=ThreadId("01HX5WBE00AAAAAAAAAAAAAAAA"),
        hash=BundleHash("EYHPV6X8XHTCS"),
        name="x",
        status=status,
        steps=0,
        started_ms=0,
        updated_ms=updated_ms,
        message="",
    )


def test_an_interruption_is_shown_as_the_follower_was_told_of_it() -> None:
    """A worker's word about a broken disk counts more than an end record that was never flushed;
    other states are read from the store.
    """
    end = {"end": "completed", "result": {"success": True}}
    view = ThreadView(summary=summary("completed", 1), start={}, records=[], end=end)
    shown = with_final_status(
        view, {"status": "interrupted", "message": "/disk: the flush failed", "steps": 0}
    )
    assert (shown.summary.status, shown.summary.message, shown.end) == (
        "interrupted",
        "/disk: the flush failed",
        None,
    )
    assert with_final_status(view, {"status": "completed", "message": "", "steps": 0}) is view
