"""Threads that workers drive or will drive, and requests to those workers (`ThreadQueue`).

DBOS's rows are read as it documents its system tables; only DBOS writes them. Without the library,
since it takes longer to load than a list of threads takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from psycopg import sql
from uncaged_bundles.ids import ThreadId, parse_thread_id
from uncaged_bundles.records import replace
from uncaged_engine.services.shared import (
    DrivenThread,
    QueueSettings,
    SteeringEvent,
    StoreLoad,
    StoreWorker,
    SubmittedThreads,
    TurnKind,
    turn_kind,
)

from .admitting import TurnRows
from .liveness import living_workers
from .problems import parsed
from .session import DatabaseSession
from .threads import ENTRY_COLUMNS, entry_of
from .turns import TurnTable
from .workers import PROTOCOL, WorkerRows

_RUNS = "PENDING"
NO_LOAD = StoreLoad(running={}, begun={})
_NOW_MS = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
MOST_SUBMITTED = 1000
OVERLAP_MS = 5000
"""A row has the time of its transaction's begin, and can be seen after the commit."""


class PendingThreads:
    """Pending threads of the store in one schema."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session
        self._table = TurnTable(session)
        self._workers_of_store = WorkerRows(session)

    def pending(self, threads: Collection[ThreadId]) -> dict[ThreadId, str]:
        rows = self._rows(PENDING, [list(threads)])
        workers = self._workers((status, executor) for _, status, executor in rows)
        return {
            parsed(parse_thread_id, row[0], "workflow_status"): worker
            for row, worker in zip(rows, workers, strict=True)
        }

    def owner(self, thread: ThreadId) -> str:
        rows = self._rows(OWNER, [thread])
        return str(rows[0][0]) if rows else ""

    def driven(self, *, limit: int) -> list[DrivenThread]:
        rows = self._rows(DRIVEN, [limit])
        workers = self._workers((status, executor) for status, executor, *_ in rows)
        found: dict[ThreadId, DrivenThread] = {}
        for row, worker in zip(rows, workers, strict=True):
            kind = turn_kind(row[2])
            other = "" if row[3] == PROTOCOL else str(row[3])
            one = DrivenThread(
                entry=entry_of(row[4:]), worker=worker, kind=kind, other_version=other
            )
            # a thread that was submitted again while its worker left it is there twice
            if worker or one.entry.id not in found:
                found[one.entry.id] = one
        return list(found.values())

    def waiting_kind(self, thread: ThreadId) -> TurnKind | None:
        rows = self._rows(WAITING_KIND, [thread, thread])
        return turn_kind(rows[0][0]) if rows else None

    def waiting(self) -> dict[TurnKind, int]:
        turns = self._turns()
        return {} if turns is None else turns.waiting()

    def load(self, settings: QueueSettings) -> StoreLoad:
        turns = self._turns()
        return NO_LOAD if turns is None else turns.load(settings)

    def workers(self) -> list[StoreWorker]:
        turns = self._turns()
        if turns is None:
            return []
        numbers = self._workers_of_store.names()
        running = turns.running(numbers.values())
        return [
            replace(one, threads=running[numbers[one.name]].total())
            for one in self._workers_of_store.living(PROTOCOL)
            if one.name in numbers
        ]

    def drain(self, names: Collection[str] | None) -> list[str]:
        return self._workers_of_store.drain(names)

    def submitted(self, since_ms: int | None) -> SubmittedThreads:
        [(now_ms,)] = self._session.query(_NOW_MS)
        if since_ms is None:
            return SubmittedThreads(until_ms=now_ms)
        rows = self._rows(SUBMITTED, [since_ms - OVERLAP_MS, MOST_SUBMITTED + 1])
        return SubmittedThreads(
            until_ms=now_ms,
            entries=tuple(entry_of(row) for row in rows[:MOST_SUBMITTED]),
            complete=len(rows) <= MOST_SUBMITTED,
        )

    def request(self, thread: ThreadId, event: SteeringEvent) -> None:
        self._session.query(
            "INSERT INTO requests (thread, event) VALUES (%s, %s)"
            " ON CONFLICT (thread) DO UPDATE SET event = excluded.event"
            " WHERE requests.event = 'pause'",
            [parse_thread_id(thread), event],
        )

    def is_requested(self, thread: ThreadId) -> bool:
        return bool(self._session.query("SELECT 1 FROM requests WHERE thread = %s", [thread]))

    def withdraw(self, thread: ThreadId) -> None:
        self._session.query("DELETE FROM requests WHERE thread = %s", [thread])

    def requests(self) -> list[tuple[ThreadId, str]]:
        """Return all requests: thread and event."""
        return [
            (parsed(parse_thread_id, thread, "requests"), str(event))
            for thread, event in self._session.query("SELECT thread, event FROM requests")
        ]

    def obeyed(self, thread: ThreadId, event: str) -> None:
        """Delete a request that was carried out; a later one for another event stays."""
        self._session.query(
            "DELETE FROM requests WHERE thread = %s AND event = %s", [thread, event]
        )

    def _workers(self, rows: Iterable[tuple[str, str | None]]) -> list[str]:
        """Return the worker of each row's status and executor; empty if it died, or none has taken
        the thread yet.
        """
        named = [executor or "" if status == _RUNS else "" for status, executor in rows]
        living = living_workers(self._session, set(named) - {""})
        return [name if name in living else "" for name in named]

    def _turns(self) -> TurnRows | None:
        table = self._table.found()
        return None if table is None else TurnRows(self._session, table)

    def _rows(self, statement: Any, values: list[object]) -> list[tuple[Any, ...]]:
        table = self._table.found()
        if table is None:
            return []
        composed = sql.SQL(statement).format(status=table, columns=ENTRY_COLUMNS)
        return self._session.query(composed, values)


# a range holds in each collation: an id ends there, or goes on with a hyphen and digits
PENDING = """
SELECT wanted.name, found.status, found.executor_id
FROM unnest(%s::text[]) AS wanted (name) CROSS JOIN LATERAL (
    SELECT status, executor_id FROM {status}
    WHERE workflow_uuid >= wanted.name AND workflow_uuid < wanted.name || 'a'
    AND status IN ('ENQUEUED', 'PENDING')
    ORDER BY status DESC, created_at DESC LIMIT 1
) AS found
"""
WAITING_KIND = """
SELECT queue_partition_key FROM {status}
WHERE workflow_uuid >= %s AND workflow_uuid < %s || 'a' AND status = 'ENQUEUED'
AND queue_name = 'threads'
"""
OWNER = """
SELECT found.executor_id FROM threads JOIN {status} AS found
ON found.workflow_uuid >= threads.name AND found.workflow_uuid < threads.name || 'a'
WHERE threads.name = %s AND found.status = 'PENDING'
AND split_part(found.executor_id, '#', 2) = threads.owner::text LIMIT 1
"""
# constants, of which the server can see that an index of these rows alone has them all
DRIVEN = """
SELECT found.status, found.executor_id, found.queue_partition_key, found.application_version, {columns} FROM {status} AS found
JOIN threads ON threads.name = left(found.workflow_uuid, 26)
WHERE found.queue_partition_key IS NOT NULL AND found.status IN ('ENQUEUED', 'PENDING')
ORDER BY found.created_at DESC LIMIT %s
"""
SUBMITTED = """
SELECT {columns} FROM {status} AS found
JOIN threads ON threads.name = left(found.workflow_uuid, 26)
WHERE found.created_at > %s ORDER BY found.created_at LIMIT %s
"""
