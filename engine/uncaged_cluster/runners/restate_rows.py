"""Rows of a store whose threads Restate runs: its turns, and what its workers registered there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, LiteralString

from psycopg import sql

from ..admitting import HIGHEST, QUEUE
from ..session import DatabaseSession
from ..turns import RESTATE, NewTurn, TakenTurn, schema_of, table_of
from ..workers import PROTOCOL

_NOW_MS: LiteralString = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"


class RestateRows:
    """The rows of one schema, in one session."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session
        self._schema = sql.Identifier(schema_of(session.address.schema, RESTATE))
        self._turns = table_of(session.address.schema, RESTATE)

    def add(self, turn: NewTurn) -> None:
        """Add a turn to the queue of all, once."""
        values = [turn.id, turn.bundle, turn.thread, turn.from_line, QUEUE, str(turn.turn.kind)]
        self._rows(ADD, [*values, HIGHEST - turn.turn.priority, PROTOCOL])

    def take(self, turns: list[str], queue: str, worker: str) -> None:
        """Move turns that have not ended to the queue of a worker."""
        self._rows(TAKE, [queue, worker, turns])

    def give_back(self, turns: list[str]) -> None:
        """Move turns that have not ended to the queue of all."""
        self._rows(GIVE_BACK, [QUEUE, turns])

    def of_worker(self, queue: str) -> list[TakenTurn]:
        """Return the turns in the queue of a worker."""
        return [
            TakenTurn(id=turn, take=take, bundle=bundle, thread=thread, from_line=from_line)
            for turn, take, bundle, thread, from_line in self._rows(OF_WORKER, [queue])
        ]

    def end(self, turn: TakenTurn, status: str) -> None:
        """Note the end of a turn, unless it was taken again."""
        self._rows(END, [status, turn.id, turn.take])

    def forget(self, before_ms: int, most: int) -> int:
        """Delete up to so many turns that ended before a time; return how many."""
        return len(self._rows(FORGET, [before_ms, most]))

    def store_name(self) -> str:
        """Return the name of this store in Restate."""
        [(name,)] = self._rows("SELECT name FROM {schema}.server")
        return str(name)

    def note_deployment(self, number: int, deployment: str) -> None:
        """Note what the worker with this session's number registered."""
        self._rows("INSERT INTO {schema}.deployments VALUES (%s, %s)", [number, deployment])

    def deployments(self, numbers: Collection[int]) -> dict[int, str | None]:
        """Return what workers registered, by their numbers; None for what a later worker at the
        same address has in its place.
        """
        return dict(self._rows(DEPLOYMENTS, [list(numbers)]))

    def former(self, number: int) -> list[int]:
        """Return the numbers of other workers that left a deployment and have no row."""
        return [former for (former,) in self._rows(FORMER, [number])]

    def forget_deployment(self, number: int) -> None:
        """Delete what was noted for a worker."""
        self._rows("DELETE FROM {schema}.deployments WHERE number = %s", [number])

    def _rows(
        self, statement: LiteralString, values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        composed = sql.SQL(statement).format(
            turns=self._turns, schema=self._schema, now=sql.SQL(_NOW_MS)
        )
        return self._session.query(composed, values)


DEPLOYMENTS: LiteralString = """
SELECT number, CASE WHEN NOT EXISTS (
    SELECT FROM {schema}.deployments AS later
    WHERE later.deployment = former.deployment AND later.number > former.number
) THEN deployment END
FROM {schema}.deployments AS former WHERE number = ANY(%s)
"""
FORMER: LiteralString = """
SELECT number FROM {schema}.deployments AS former
WHERE NOT EXISTS (SELECT FROM workers WHERE workers.number = former.number) AND number <> %s
"""
ADD: LiteralString = """
INSERT INTO {turns} (workflow_uuid, bundle, thread, from_line, status, queue_name,
    queue_partition_key, priority, application_version, created_at)
VALUES (%s, %s, %s, %s, 'ENQUEUED', %s, %s, %s, %s, {now})
ON CONFLICT (workflow_uuid) DO NOTHING
"""
TAKE: LiteralString = """
UPDATE {turns} SET queue_name = %s, status = 'PENDING', executor_id = %s, takes = takes + 1
WHERE workflow_uuid = ANY(%s) AND status IN ('ENQUEUED', 'PENDING')
"""
GIVE_BACK: LiteralString = """
UPDATE {turns} SET queue_name = %s, status = 'ENQUEUED', executor_id = NULL
WHERE workflow_uuid = ANY(%s) AND status IN ('ENQUEUED', 'PENDING')
"""
OF_WORKER: LiteralString = """
SELECT workflow_uuid, takes, bundle, thread, from_line FROM {turns}
WHERE queue_name = %s AND status = 'PENDING' AND queue_partition_key IS NOT NULL
"""
END: LiteralString = """
UPDATE {turns} SET status = %s, ended_at = {now}
WHERE workflow_uuid = %s AND takes = %s AND status = 'PENDING'
"""
FORGET: LiteralString = """
DELETE FROM {turns} WHERE workflow_uuid IN (
    SELECT workflow_uuid FROM {turns} WHERE ended_at < %s ORDER BY ended_at LIMIT %s
) RETURNING workflow_uuid
"""
