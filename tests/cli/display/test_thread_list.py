"""Table of threads."""

from __future__ import annotations

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.names import MAX_NAME_CHARACTERS
from uncaged_cli.display.thread_list import thread_table
from uncaged_engine.state.observe import ThreadSummary


def test_a_flow_name_of_a_forged_journal_leaves_the_table_readable() -> None:
    """A longer name than a flow can have is cut, and has one line."""
    summary = ThreadSummary(
        thread_id=ThreadId("01HX5WBE00AAAAAAAAAAAAAAAA"),
        hash=BundleHash("EYHPV6X8XHTCS"),
        name="a\n" * 100_000,
        status="completed",
        steps=1,
        started_ms=0,
        updated_ms=1,
        message="",
    )
    _, row = thread_table([summary], {}, now_ms=1, width=None)
    text = "".join(map(str, row))
    assert len(text) < MAX_NAME_CHARACTERS * 4 and "\n" not in text
