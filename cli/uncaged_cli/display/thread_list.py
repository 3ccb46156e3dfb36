"""Table of threads. Ids can be typed back; they are shortened only on a narrow terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from uncaged_bundles.clean import shorten
from uncaged_bundles.names import MAX_NAME_CHARACTERS
from uncaged_engine.stores.endings import UNSUCCESSFUL

from .costs import spell_spent
from .durations import ago
from .output import Piece, Styled, status
from .table import render, unique_prefixes

if TYPE_CHECKING:
    from uncaged_engine.api import Engine, ThreadSummary

HEADERS = ("id", "flow", "status", "steps", "started", "message")
WIDE_COLUMNS = 110
SHORTEST_ID = 10


def short_ids(
    engine: Engine, threads: Sequence[ThreadSummary], *, width: int | None
) -> Mapping[str, str]:
    """Return the shortest unique prefix of each thread id, or nothing if the terminal is wide
    enough, or the store has no list of all ids here.
    """
    if width is None or width >= WIDE_COLUMNS or engine.is_shared:
        return {}
    from uncaged_engine.threads.names import ids_near

    return unique_prefixes(
        ids_near(engine.store, [thread.thread_id for thread in threads]), minimum=SHORTEST_ID
    )


def thread_table(
    threads: Sequence[ThreadSummary], shown: Mapping[str, str], *, now_ms: int, width: int | None
) -> list[list[Piece]]:
    """Return the table's lines; *shown* has the shortened ids."""
    if not threads:
        return []
    counted = any(spell_spent(thread.spent) for thread in threads)
    headers = (*HEADERS[:-1], *(("used",) if counted else ()), HEADERS[-1])
    rows: list[list[Piece]] = [
        [
            Styled(shown.get(thread.thread_id, thread.thread_id), "cyan"),
            # a thread from elsewhere may state any name
            shorten(thread.name or "-", MAX_NAME_CHARACTERS)
            + (" (imported)" if thread.imported else ""),
            Styled(UNSUCCESSFUL, "yellow") if thread.success is False else status(thread.status),
            str(thread.steps),
            ago(thread.started_ms, now_ms),
            *([spell_spent(thread.spent)] if counted else []),
            thread.problem or thread.message or "",
        ]
        for thread in threads
    ]
    return render(headers, rows, width=width)
