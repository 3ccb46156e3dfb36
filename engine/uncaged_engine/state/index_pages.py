"""Queries of the index for a page of threads, and for their number by status."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from uncaged_bundles.ids import ThreadId, is_bundle_hash, is_thread_id
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store

from .index import COLUMNS, WHOLE, Row
from .index_file import ask
from .pages import PagePlace


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedThread:
    """A thread that may fit. row: its summary; None: its journal has to be read."""

    place: PagePlace
    row: Row | None


def candidates(
    store: Store,
    clause: str,
    values: Sequence[object],
    before: PagePlace | None,
    limit: int,
) -> list[PagedThread] | None:
    """Return the threads whose kept summary fits a clause of SQL, and those without one, started
    last first; None if there is no index.

    Args:
        clause: over the columns of `threads`, with ``?`` for each of *values*; no text of others.
    """
    query = (
        f"SELECT place, thread, hash, sure IS 1 AND {WHOLE}, hash || '/' || thread, {COLUMNS} FROM threads "  # noqa: S608 - as documented
        f"WHERE (status IS NULL OR {clause}) AND (place, thread, hash) < (?, ?, ?) "
        "ORDER BY place DESC, thread DESC, hash DESC LIMIT ?"
    )
    first = (1 << 62, "~", "~") if before is None else (before.start, before.thread, before.hash)

    def work(connection: sqlite3.Connection) -> list[PagedThread]:
        return [
            PagedThread(
                place=PagePlace(start=place, thread=ThreadId(thread), hash=hash),
                row=tuple(row) if is_sure else None,
            )
            for place, thread, hash, is_sure, *row in connection.execute(
                query, (*values, *first, limit)
            )
            if is_thread_id(thread) and (not hash or is_bundle_hash(hash))
        ]

    return ask(store, work)


def counts(store: Store) -> list[tuple[str | None, bool, int]] | None:
    """Return status, whether it says that it had no success, and the number of such threads; status
    None: no summary is kept. None if there is no index.
    """
    query = "SELECT status, success IS 0, count(*) FROM threads GROUP BY status, success IS 0"
    return ask(
        store,
        lambda connection: [
            (status, bool(failed), number) for status, failed, number in connection.execute(query)
        ],
    )
