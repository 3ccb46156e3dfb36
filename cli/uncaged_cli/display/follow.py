"""Following a thread ends when the thread stops, and its result becomes the exit code; an interrupt leaves the thread running."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from uncaged_bundles.ids import ThreadId
from uncaged_engine.threads.ending import Ending, ending
from uncaged_engine.threads.story import Record, Story

from . import jsonout
from .listing import summary_document
from .plain import Heard, PlainView, View
from .screen import is_terminal, next_step, note

if TYPE_CHECKING:
    from uncaged_bundles.storage.store import Store
    from uncaged_engine.api import Engine, ThreadSummary, ThreadView

EXIT_INTERRUPTED = 130
UNCOUNTED = "the limit of money does not count what has no known price: name it under `prices` in config.yaml, or set --max-tokens"


def follow(engine: Engine, thread_id: ThreadId, *, as_json: bool, verbose: bool = False, known_records: int = 0) -> int:
    """Show a thread until it stops and return the exit code for what it came to.

    Args:
        verbose: unfold each step, and in a pipe say what is done before it is done, too.
        known_records: so many records at the beginning are taken in without being shown (a resumed thread's past).
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
            last = ending_of(final, engine.store)
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
    """Return the thread as its follower was told that it stopped; what the worker said of an interruption need not be on any disk."""
    if status.get("status") != "interrupted" or status["message"] == view.summary.message:
        return view
    return replace(view, end=None, summary=replace(view.summary, status="interrupted", message=str(status["message"])))


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

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def opening(self, start: Record) -> None:
        jsonout.line({"event": "start", "record": start})

    def kept(self, steps: int) -> None:
        jsonout.line({"event": "kept", "steps": steps})

    def heard(self, heard: Heard) -> None:
        jsonout.line({"event": "record", "record": heard.record})

    def progress(self, body: Mapping[str, object]) -> None:
        jsonout.line({"event": "progress", "progress": body})

    def ending(self, ending: Ending, thread: Mapping[str, object]) -> None:
        jsonout.line({"event": "end", "exitCode": ending.exit_code, "thread": thread})


def ending_of(view: ThreadView, store: Store, *, is_merged: bool = False) -> Ending:
    """Return the last words for a thread as it is now on disk. is_merged: as for `ending`."""
    story = Story()
    for record in view.records:
        story.hear(record)
    return ending(
        thread_id=view.summary.thread_id,
        status=view.summary.status,
        end=view.end,
        message=view.summary.message,
        last_void=story.last_void,
        repository=repository_elsewhere(view.start, Path.cwd()),
        wants_fields="fields" in story.wait,
        used={"maxCost": view.summary.spent.cost, "maxTokens": view.summary.spent.tokens},
        undecided=view.summary.undecided,
        report=report_of(view.summary, store.run),
        only_branch=own_branch(view.start) if view.summary.imported else None,
        failure=view.failure,
        last_outside=story.last_outside,
        is_merged=is_merged,
    )


def limits_money(start: Record, records: Iterable[Record]) -> bool:
    """Whether a thread has a limit of money, from its beginning or since it was resumed."""
    parameters = start.get("parameters")
    options = parameters.get("options") if isinstance(parameters, Mapping) else None
    return (isinstance(options, Mapping) and "maxCost" in options) or any("maxCost" in record for record in records if "control" in record)


def report_of(summary: ThreadSummary, directory: Path) -> Path | None:
    """Return the worker's report about the bug that interrupted a thread, if that is what did it."""
    if summary.status != "interrupted":
        return None
    for path in sorted(directory.glob(f"report-*-{summary.thread_id}.txt"), reverse=True):
        written_ms = path.name.split("-")[1]
        if written_ms.isdecimal() and int(written_ms) >= summary.updated_ms:
            return path
    return None


def repository_elsewhere(start: Mapping[str, object], directory: Path) -> str | None:
    """Return the thread's repository when *directory* is not inside it."""
    workspace = start.get("workspace")
    repository = workspace.get("repository") if isinstance(workspace, Mapping) else None
    if not isinstance(repository, str) or directory.is_relative_to(repository):
        return None
    return repository


def own_branch(start: Mapping[str, object]) -> str:
    """Return the branch on which a thread works here; empty if it has none."""
    workspace = start.get("workspace")
    return str(workspace.get("branch")) if isinstance(workspace, Mapping) else ""


def summary_of(view: ThreadView) -> Mapping[str, object]:
    """Return a thread as one JSON object."""
    return {
        **summary_document(view.summary),
        "tookMs": max(0, view.summary.updated_ms - view.summary.started_ms),
        "failure": view.failure.document() if view.failure is not None else None,
        "end": {key: value for key, value in view.end.items() if key != "chain"} if view.end else None,
    }
