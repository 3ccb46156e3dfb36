"""Display of forks that ran side by side: a table of figures, the steps after the prefix, and the
difference of their files.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .costs import money
from .durations import spell
from .output import Piece, Styled, result, text_width
from .table import render
from .thread_diff import show_futures

if TYPE_CHECKING:
    from uncaged_agents.changes import FileChanges
    from uncaged_capture.comparing import ForkComparison
    from uncaged_engine.api import ThreadView

HEADERS = ("fork", "thread", "status", "steps", "time", "tokens", "cost", "result")


def comparison_document(
    found: ForkComparison, changes: Mapping[str, FileChanges | str]
) -> Mapping[str, object]:
    """Return a comparison as JSON data."""
    documents = []
    for side, view, future in zip(found.sides, found.views, found.futures, strict=True):
        spent = view.spent
        documents.append(
            {
                "label": side.label,
                "threadId": side.thread_id,
                "status": view.summary.status,
                "success": view.summary.success,
                "message": view.summary.message,
                "result": view.end.get("result") if view.end else None,
                "tookMs": took_ms(view),
                "tokens": spent.tokens,
                "cost": spent.cost,
                "unpriced": spent.unpriced,
                "steps": [{"label": row.label, "detail": row.detail} for _, row in future],
            }
        )
    return {
        "kept": found.kept,
        "together": found.together,
        "forks": documents,
        "files": {
            label: {"problem": one} if isinstance(one, str) else {"changed": list(one.files)}
            for label, one in changes.items()
        },
    }


def show_comparison(found: ForkComparison, changes: Mapping[str, FileChanges | str]) -> None:
    """Print the table, the steps, and the files."""
    rows: list[list[Piece]] = []
    for side, view, future in zip(found.sides, found.views, found.futures, strict=True):
        spent = view.spent
        rows.append(
            [
                side.label,
                Styled(side.thread_id, "cyan"),
                view.summary.status,
                str(len(future)),
                spell(took_ms(view)),
                f"{spent.tokens:,}" if spent.tokens else "",
                money(spent.cost, unpriced=spent.unpriced),
                view.summary.message,
            ]
        )
    for line in render(HEADERS, rows, width=text_width(sys.stdout)):
        result(*line)
    together = found.together
    result()
    result(f"{together} step{'' if together == 1 else 's'} alike after the first {found.kept}")
    names = [side.label for side in found.sides]
    show_futures(names, [one[together:] for one in found.futures], found.kept + together)
    for label, one in changes.items():
        result()
        result(f"files of {label} against {names[0]}:")
        if isinstance(one, str):
            result(f"  {one}")
        elif not one.files:
            result("  no file differs")
        else:
            for file in one.files:
                counts = (
                    "binary" if file["added"] is None else f"+{file['added']} -{file['removed']}"
                )
                result(f"  {file['path']}  {counts}")


def took_ms(view: ThreadView) -> int:
    return max(0, view.summary.updated_ms - view.summary.started_ms)
