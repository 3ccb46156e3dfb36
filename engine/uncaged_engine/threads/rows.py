"""Rows of a thread's timeline as JSON data, with the numbers by which a reader goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import replace

from uncaged_bundles.clean import clean_line
from uncaged_bundles.errors import UncagedError

from ..effect_kinds import handler_for
from .timeline import OpenStep, Record, Row, Timeline

MAX_LABEL_CHARACTERS = 200
MAX_DETAIL_CHARACTERS = 400

Words = Callable[[str, object], str]
"""Returns what an effect (kind and body) does, in a few words; empty for the engine's label."""


def handler_words(kind: str, body: object) -> str:
    """Return the words of the effect's handler; empty if it has none, or is not installed."""
    with suppress(UncagedError):
        return clean_line(handler_for(kind).words(body))
    return ""


def add_record(timeline: Timeline, record: Record, words: Words = handler_words) -> Row | None:
    """Add the next record to a timeline; return the row that it completes, labelled by *words*."""
    step = timeline.open if "sub" not in record else None  # the record closes the step
    row = timeline.add(record)
    if row is None or step is None or row.mark not in ("done", "failed"):
        return row
    label = words(step.kind, step.body)
    return replace(row, label=label) if label else row


class RowCount:
    """Rows of one thread as documents, numbered from 1 in the order of the journal."""

    def __init__(self, words: Words = handler_words) -> None:
        self.number = 0
        self.timeline = Timeline()
        self._words = words

    def copy(self) -> RowCount:
        """Return the same state, which can go on by itself."""
        other = copy(self)
        other.timeline = copy(self.timeline)  # its parts are never changed
        return other

    def add(self, record: Record) -> dict[str, object] | None:
        """Add the next record; return the row that it completes."""
        before = self.timeline.open
        row = add_record(self.timeline, record, self._words)
        if row is None:
            return None
        self.number += 1
        kind = str(record.get("control") or ("role" if "role" in record else ""))
        if not kind and before is not None:
            kind = before.kind
        return {
            "number": self.number,
            "seq": row.seq,
            "mark": row.mark,
            "kind": kind,
            "label": row.label[:MAX_LABEL_CHARACTERS],
            "detail": row.detail[:MAX_DETAIL_CHARACTERS],
            "by": row.by[:MAX_LABEL_CHARACTERS],
            "tookMs": row.duration_ms,
            "timestamp": record.get("timestamp"),
        }

    def open_step(self) -> dict[str, object] | None:
        """Return the effect that is being performed, or that was when the thread stopped."""
        step = self.timeline.open
        return None if step is None else self._open(step)

    def _open(self, step: OpenStep) -> dict[str, object]:
        label = self._words(step.kind, step.body) or clean_line(step.label)
        return {
            "seq": str(step.seq),
            "kind": step.kind,
            "label": label[:MAX_LABEL_CHARACTERS],
            "startedMs": step.started_ms,
            "attempt": step.attempt,
        }
