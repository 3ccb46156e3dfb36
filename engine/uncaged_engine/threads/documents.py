"""JSON documents about threads, for the command line and the web page."""

from __future__ import annotations

from collections.abc import Mapping

from ..state.observe import ThreadSummary


def summary_document(thread: ThreadSummary) -> Mapping[str, object]:
    """Return a thread's summary for JSON."""
    return {
        "threadId": thread.thread_id,
        "flow": thread.name,
        "hash": thread.hash,
        "status": thread.status,
        "steps": thread.steps,
        "startedMs": thread.started_ms,
        "updatedMs": thread.updated_ms,
        "success": thread.success,
        "used": thread.spent.document(),
        "message": thread.message,
        "undecided": thread.undecided,
        "problem": thread.problem,
        "imported": thread.imported,
    }
