"""Following of a thread until it stops. Its result becomes the exit code; Ctrl-C leaves the thread
running.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.services.journal import PACK_KEY
from uncaged_engine.threads.documents import summary_document
from uncaged_engine.threads.ending import EXIT_UNSUCCESSFUL, Ending, ending_of
from uncaged_engine.threads.notifications import mark_seen
from uncaged_engine.threads.timeline import Record, Timeline

from ..entry import EXIT_INTERRUPTED
from . import json_output
from .output import is_terminal, next_step, note
from .plain import FollowedRecord, FollowView, PlainView
from .step_labels import add_record

if TYPE_CHECKING:
    from uncaged_engine.api import Engine, ThreadView

UNPRICED = "the cost limit does not count models without a known price; add them under `prices` in config.yaml, or set --max-tokens"


def follow(
    engine: Engine,
    thread_id: ThreadId,
    *,
    as_json: bool,
    verbose: bool = False,
    known_records: int = 0,
    view: FollowView | None = None,
) -> int:
    """Show a thread until it stops and return the exit code for its result.

    Args:
        verbose: show the details of each step, and in a pipe also its progress.
        known_records: number of records at the beginning that are read but not shown (the past of a
            resumed thread).
        view: shows the thread; the default suits standard output.
    """
    timeline = Timeline()
    try:
        with view or choose_view(as_json=as_json, verbose=verbose) as shown:
            shown.start(engine.thread(thread_id).start)
            count = 0
            status: Mapping[str, Any] = {}
            for event in engine.follow(thread_id):
                if event.kind == "progress":
                    shown.progress(event.body)
                elif event.kind == "record" and "format" not in event.body:
                    count += 1
                    row = add_record(timeline, event.body)
                    if count > known_records:
                        shown.record(FollowedRecord(record=event.body, row=row, open=timeline.open))
                    elif count == known_records and timeline.steps:
                        shown.skipped(timeline.steps)
                elif event.kind == "status":
                    status = event.body
            final = with_final_status(engine.thread(thread_id), status)
            brought = None
            if PACK_KEY in (final.start.get("workspace") or {}):
                from .fetched import bring_branch, note_brought

                brought = bring_branch(engine, final)
            is_missing = isinstance(brought, UncagedError)
            last = ending_of(final, engine.store, Path.cwd(), is_merged=is_missing)
            shown.end(last, summary_of(final))
            if brought is not None:
                note_brought(thread_id, brought)
            mark_seen(engine.store, final.summary.thread_id, final.summary.updated_ms)
            if final.summary.spent.unpriced and has_cost_limit(final.start, final.records):
                note(UNPRICED)
        if last.exit_code == EXIT_UNSUCCESSFUL and not as_json:
            from ..fixing import fix_if_declared

            fix_if_declared(engine, final)
        return last.exit_code
    except KeyboardInterrupt:
        note(f"\nthread {thread_id} is still running")
        next_step(f"uncaged-workflow thread {thread_id} --follow")
        next_step(f"uncaged-workflow kill {thread_id}")
        return EXIT_INTERRUPTED


def with_final_status(view: ThreadView, status: Mapping[str, Any]) -> ThreadView:
    """Return the thread with the status that the follower received: the reason of an interruption
    may be on no disk.
    """
    if status.get("status") != "interrupted" or status["message"] == view.summary.message:
        return view
    return replace(
        view,
        end=None,
        summary=replace(view.summary, status="interrupted", message=str(status["message"])),
    )


def choose_view(*, as_json: bool, verbose: bool = False) -> FollowView:
    """Return the live view for a terminal that can show it, else plain lines; JSON if asked."""
    if as_json:
        return JsonView()
    if is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb":
        from .live import LiveView

        return LiveView(verbose=verbose)
    return PlainView(verbose=verbose)


class JsonView:
    """JSON Lines output: the start record, each record, each progress report, the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def start(self, start: Record) -> None:
        json_output.line({"event": "start", "record": start})

    def skipped(self, steps: int) -> None:
        json_output.line({"event": "kept", "steps": steps})

    def record(self, followed: FollowedRecord) -> None:
        json_output.line({"event": "record", "record": followed.record})

    def progress(self, body: Mapping[str, object]) -> None:
        json_output.line({"event": "progress", "progress": body})

    def end(self, ending: Ending, thread: Mapping[str, object]) -> None:
        json_output.line({"event": "end", "exitCode": ending.exit_code, "thread": thread})


def has_cost_limit(start: Record, records: Iterable[Record]) -> bool:
    """Check whether a cost limit was set at the start or by a resume."""
    parameters = start.get("parameters")
    options = parameters.get("options") if isinstance(parameters, Mapping) else None
    return (isinstance(options, Mapping) and "maxCost" in options) or any(
        "maxCost" in record for record in records if "control" in record
    )


def summary_of(view: ThreadView) -> Mapping[str, object]:
    """Return a thread as one JSON object."""
    return {
        **summary_document(view.summary),
        "tookMs": max(0, view.summary.updated_ms - view.summary.started_ms),
        "ranMs": view.ran_ms,
        "failure": view.failure.document() if view.failure is not None else None,
        "end": {key: value for key, value in view.end.items() if key != "chain"}
        if view.end
        else None,
    }
