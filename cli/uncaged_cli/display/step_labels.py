"""Labels of steps for people: what a step does in a browser, and the engine's label of others."""

from __future__ import annotations

from dataclasses import replace

from uncaged_bundles.clean import clean_line
from uncaged_engine.threads.timeline import OpenStep, Record, Row, Timeline


def open_label(step: OpenStep) -> str:
    """Return the label of a step in flight."""
    return _browser_words(step) or step.label


def add_record(timeline: Timeline, record: Record) -> Row | None:
    """Add the next record to a timeline; return the row that it completes, labelled."""
    # the record closes the step
    words = "" if timeline.open is None or "sub" in record else _browser_words(timeline.open)
    row = timeline.add(record)
    if row is None or not words or row.mark not in ("done", "failed"):
        return row
    return replace(row, label=words)


def _browser_words(step: OpenStep) -> str:
    """Return what a step does in a browser; empty for other steps."""
    if step.kind != "browser":
        return ""
    # 1 ms, for web flows only
    from uncaged_browser.recording.summary import summary_of

    return clean_line(summary_of(step.body))
