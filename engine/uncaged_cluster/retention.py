"""Old threads, by an index over their ends, and their removal (`ThreadRetention`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from psycopg import sql
from uncaged_bundles.ids import ThreadId, parse_thread_id
from uncaged_engine.services.shared import EndedThread

from .problems import parsed
from .ranges import drop_empty_ranges
from .session import DatabaseSession
from .threads import ENTRY_COLUMNS, entry_of

YOUNG_BLOB = "1 day"
"""A blob is put before the line that names it, by a copy of a store perhaps hours before."""
THREADS_AT_ONCE = 1000
BLOBS_AT_ONCE = 1000
ENDED = """
SELECT {columns}, flow, ended_ms, lines, size_bytes FROM threads
WHERE ending <> '' AND ended_ms < %s AND ending = ANY(%s) AND (ended_ms, name) > (%s, %s) {of_flow}
ORDER BY ended_ms, name LIMIT %s
"""
_LOCKED = """
SELECT number, name, lines, owner FROM threads WHERE name = ANY(%s) AND NOT pinned
FOR UPDATE SKIP LOCKED
"""
_REMOVE = """
WITH gone AS (DELETE FROM threads WHERE number = ANY(%s) RETURNING number, bundle, name),
marks AS (INSERT INTO removed_threads (bundle, name) SELECT bundle, name FROM gone ON CONFLICT DO NOTHING),
notes AS (DELETE FROM thread_notes USING gone WHERE thread = gone.number),
asked AS (DELETE FROM requests USING gone WHERE requests.thread = gone.name)
DELETE FROM thread_lines WHERE log = ANY(%s)
"""
_NAMED = """
SELECT DISTINCT found[1] FROM thread_lines,
    regexp_matches(encode(line, 'escape'), '"([0-9a-f]{32})"', 'g') AS found
WHERE log > %s AND log <= %s
"""


class RetentionRows:
    """The ended threads of a schema."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session

    def ended(
        self,
        *,
        before_ms: int,
        endings: Collection[str],
        flow: str | None,
        after: EndedThread | None,
        limit: int,
    ) -> list[EndedThread]:
        of_flow = sql.SQL("" if flow is None else "AND flow = %s")
        last = (-1, "") if after is None else (after.ended_ms, after.entry.id)
        values = [before_ms, list(endings), *last, *([] if flow is None else [flow]), limit]
        statement = sql.SQL(ENDED).format(columns=ENTRY_COLUMNS, of_flow=of_flow)
        return [_ended(row) for row in self._session.query(statement, values)]

    def endings(self, threads: Collection[ThreadId]) -> dict[ThreadId, str]:
        rows = self._session.query(
            "SELECT name, ending FROM threads WHERE name = ANY(%s)", [list(threads)]
        )
        return {parsed(parse_thread_id, name, "threads"): ending for name, ending in rows}

    def remove(self, threads: Mapping[ThreadId, int]) -> list[ThreadId]:
        with self._session.transaction() as cursor:
            rows = cursor.execute(_LOCKED, [list(threads)]).fetchall()
            found = {
                number: ThreadId(name)
                for number, name, lines, owner in rows
                if lines == threads[name] and (owner is None or not self._session.lives(owner))
            }
            numbers = list(found)
            cursor.execute(_REMOVE, [numbers, numbers])
        removed = set(found.values())
        return [thread for thread in threads if thread in removed]

    def sweep(self, *, progress: Callable[[int], None]) -> int:
        freed = self._sweep_blobs(progress)
        drop_empty_ranges(self._session)
        return freed

    def _sweep_blobs(self, progress: Callable[[int], None]) -> int:
        """Remove old blobs that no line names. A line that is appended meanwhile names blobs that
        were put just before, which are young.
        """
        [(until,)] = self._session.query(f"SELECT now() - interval '{YOUNG_BLOB}'")
        unnamed = {
            name
            for (name,) in self._session.query("SELECT name FROM blobs WHERE put_at < %s", [until])
        }
        [(newest,)] = self._session.query("SELECT coalesce(max(number), 0) FROM threads")
        number = 0
        while unnamed and number < newest:
            rows = self._session.query(
                "SELECT max(number) FROM (SELECT number FROM threads WHERE number > %s ORDER BY number LIMIT %s) AS page",
                [number, THREADS_AT_ONCE],
            )
            following = rows[0][0]
            if following is None:
                break
            unnamed.difference_update(
                name for (name,) in self._session.query(_NAMED, [number, following])
            )
            number = following
            progress(number)
        freed = 0
        names = sorted(unnamed)
        for at in range(0, len(names), BLOBS_AT_ONCE):
            rows = self._session.query(
                "DELETE FROM blobs WHERE name = ANY(%s) AND put_at < %s RETURNING octet_length(content)",
                [names[at : at + BLOBS_AT_ONCE], until],
            )
            freed += sum(size for (size,) in rows)
        return freed


def _ended(row: tuple[Any, ...]) -> EndedThread:
    flow, ended_ms, lines, size_bytes = row[5:]
    return EndedThread(
        entry=entry_of(row[:5]), flow=flow, ended_ms=ended_ms, lines=lines, size_bytes=size_bytes
    )
