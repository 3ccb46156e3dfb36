"""Following a thread ends when the thread stops, and its result becomes the exit code; an interrupt
leaves the thread running.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from uncaged_bundles.ids import ThreadId
from uncaged_engine.threads.ending import Ending, ending_of
from uncaged_engine.threads.story import Record, Story

from . import json_output
from .output import is_terminal, next_step, note
from .plain import Heard, PlainView, View
from .thread_list import summary_document

if TYPE_CHECKING:
    from uncaged_engine.api import Engine, ThreadView

EXIT_INTERRUPTED = 130
UNCOUNTED = "the limit of money does not count what has no known price: name it under `prices` in config.yaml, or set --max-tokens"


def follow(
    engine: Engine,
    thread_id: ThreadId,
    *,
    as_json: bool,
    verbose: bool = False,
    known_records: int = 0,
) -> int:
    """Show a thread until it stops and return the exit code for what it came to.

    Args:
        verbose: unfold each step, and in a pipe say what is done before it is done, too.
        known_records: so many records at the beginning are taken in without being shown (a resumed
            thread's past).
    """
    story = Story()
    try:
        with choose_view(as_json=as_json, verbose=verbose) as view:
            view.opening(engine.thread(thread_id).start)
            heard = 0
            status: Mapping[str, Any] = {}
            for event in engine.follow(thread_id):
                if event.kind == "progress":
                    view.progress(event.body)
                elif event.kind == "record" and "format" not in event.body:
                    heard += 1
                    row = story.hear(event.body)
                    if heard > known_records:
                        view.heard(Heard(record=event.body, row=row, open=story.open))
                    elif heard == known_records and story.steps:
                        view.kept(story.steps)
                elif event.kind == "status":
                    status = event.body
            final = stopped(engine.thread(thread_id), status)
            last = ending_of(final, engine.store, Path.cwd())
            view.ending(last, summary_of(final))
            if final.summary.spent.unpriced and limits_money(final.start, final.records):
                note(UNCOUNTED)
            return last.exit_code
    except KeyboardInterrupt:
        note(f"\nthread {thread_id} goes on without you")
        next_step(f"uncaged-workflow thread {thread_id} --follow")
        next_step(f"uncaged-workflow kill {thread_id}")
        return EXIT_INTERRUPTED


def stopped(view: ThreadView, status: Mapping[str, Any]) -> ThreadView:
    """Return the thread as its follower was told that it stopped; what the worker said of an
    interruption need not be on any disk.
    """
    if status.get("status") != "interrupted" or status["message"] == view.summary.message:
        return view
    return replace(
        view,
        end=None,
        summary=replace(view.summary, status="interrupted", message=str(status["message"])),
    )


def choose_view(*, as_json: bool, verbose: bool = False) -> View:
    """The live view for a terminal that can show it, else plain lines, else JSON."""
    if as_json:
        return JsonView()
    if is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb":
        from .live import LiveView

        return LiveView(verbose=verbose)
    return PlainView(verbose=verbose)


class JsonView:
    """One object a line: the thread, each record, each progress, the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def opening(self, start: Record) -> None:
        json_output.line({"event": "start", "record": start})

    def kept(self, steps: int) -> None:
        json_output.line({"event": "kept", "steps": steps})

    def heard(self, heard: Heard) -> None:
        json_output.line({"event": "record", "record": heard.record})

    def progress(self, body: Mapping[str, object]) -> None:
        json_output.line({"event": "progress", "progress": body})

    def ending(self, ending: Ending, thread: Mapping[str, object]) -> None:
        json_output.line({"event": "end", "exitCode": ending.exit_code, "thread": thread})


def limits_money(start: Record, records: Iterable[Record]) -> bool:
    """Whether a thread has a limit of money, from its beginning or since it was resumed."""
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
        "failure": view.failure.document() if view.failure is not None else None,
        "end": {key: value for key, value in view.end.items() if key != "chain"}
        if view.end
        else None,
    }
