"""What following knows besides the events."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_cli.display.follow import report_of, repository_elsewhere, stopped
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


@pytest.mark.parametrize(
    ("status", "updated_ms", "found"), [("interrupted", 500, True), ("interrupted", 501, False), ("failed", 500, False)]
)
def test_a_report_counts_when_it_is_the_last_thing_that_happened(tmp_path: Path, status: State, updated_ms: int, found: bool) -> None:
    """A report older than the last line is about an interruption that somebody has resumed since."""
    for name in ("report-400-01HX5WBE00AAAAAAAAAAAAAAAA.txt", "report-500-01HX5WBE00AAAAAAAAAAAAAAAA.txt", "report-900-OTHER.txt"):
        (tmp_path / name).write_text("x")
    report = report_of(summary(status, updated_ms), tmp_path)
    assert (report is not None) == found
    assert report is None or report.name.startswith("report-500-")


def test_git_is_told_the_repository_only_from_elsewhere(tmp_path: Path) -> None:
    """Inside the repository a plain `git merge` will do."""
    start = {"workspace": {"repository": str(tmp_path)}}
    assert repository_elsewhere(start, tmp_path / "src") is None
    assert repository_elsewhere(start, tmp_path.parent) == str(tmp_path)
    assert repository_elsewhere({}, tmp_path) is None


def test_an_interruption_is_shown_as_the_follower_was_told_of_it() -> None:
    """A worker's word about a broken disk counts more than an end record that was never flushed; other states are read from the store."""
    end = {"end": "completed", "result": {"success": True}}
    view = ThreadView(summary=summary("completed", 1), start={}, records=[], end=end)
    shown = stopped(view, {"status": "interrupted", "message": "/disk: the flush failed", "steps": 0})
    assert (shown.summary.status, shown.summary.message, shown.end) == ("interrupted", "/disk: the flush failed", None)
    assert stopped(view, {"status": "completed", "message": "", "steps": 0}) is view
