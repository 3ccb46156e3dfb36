"""Details of a thread that is not followed: header, status, prompt, steps, result."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.clean import shorten
from uncaged_engine.threads.ending import Ending
from uncaged_engine.threads.timeline import Timeline

from .costs import spell_spent
from .durations import clock_time
from .fetched import left_behind
from .header import header_line
from .output import Piece, Styled, status, text_width
from .plain import ending_lines, row_pieces
from .step_details import step_details
from .step_labels import add_record, open_label

if TYPE_CHECKING:
    from uncaged_engine.api import ThreadView

PROMPT_COLUMNS = 300
COMMIT_CHARACTERS = 12


def thread_lines(
    view: ThreadView, ending: Ending, *, full: bool, worktree: Path | None = None
) -> Iterator[list[Piece]]:
    """Yield the lines that show a thread.

    Args:
        full: show prompt and answers whole.
        worktree: the directory of its files, if there is one.
    """
    summary, width = view.summary, text_width(sys.stdout, full=full)
    yield [header_line(view.start)]
    yield [
        "status ",
        status(summary.status),
        f", {summary.steps} step{'' if summary.steps == 1 else 's'}, started {clock_time(summary.started_ms)}",
    ]
    yield from _workspace(view.start)
    if worktree is not None:
        yield ["worktree: ", str(worktree)]
    if prompt := _prompt(view.start):
        yield ["prompt: ", prompt if full else shorten(prompt, PROMPT_COLUMNS)]
    timeline = Timeline()
    for record in view.records:
        row = add_record(timeline, record)
        if row is not None:
            yield row_pieces(row, width=width)
            if full:
                for detail_line in step_details(record):
                    yield [detail_line]
    if timeline.open is not None and summary.status == "running":
        yield [Styled(f"{timeline.open.seq:>4}  {open_label(timeline.open)}  in progress", "cyan")]
    if used := spell_spent(view.spent):
        yield ["used: ", used]
    if inherited := spell_spent(view.inherited_spent):
        yield ["inherited from its source: ", inherited]
    if view.copied and view.end is None:
        act = "answer" if summary.status == "waiting" else "resume"
        yield [f"copied from another store, which may drive it still; `{act}` takes it up here"]
    if summary.problem:
        yield [Styled("problem: ", "red"), summary.problem]
    if summary.status != "running":
        yield from ending_lines(ending, {})


def _prompt(start: Mapping[str, object]) -> str:
    parameters = start.get("parameters")
    return str(parameters.get("prompt") or "") if isinstance(parameters, Mapping) else ""


def _workspace(start: Mapping[str, object]) -> Iterator[list[Piece]]:
    workspace = start.get("workspace")
    if isinstance(workspace, Mapping):
        base = str(workspace.get("base", ""))[:COMMIT_CHARACTERS]
        yield [
            "workspace: ",
            f"{workspace.get('repository')}, branch {workspace.get('branch')}, from {base}",
        ]
        if names := left_behind(start):
            yield ["not carried: ", names]
