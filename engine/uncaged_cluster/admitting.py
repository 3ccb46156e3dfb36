"""Turns of threads between the queue of all and the queues of the workers.

A turn that waits is a row in the queue ``threads``, which no worker runs. Its kind is the row's
partition key, as DBOS calls it, so that an index has the turns of each kind in order. A worker that
takes it moves it to a queue of its own; a dead worker's turns are moved back. All moves are made
under one lock, which makes the limits hold over all workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

from psycopg import sql
from uncaged_engine.services.shared import (
    QUEUE_DOCUMENT,
    QueueSettings,
    StoreLoad,
    TurnKind,
    WaitingTurn,
    WorkerOffer,
    admitted,
    parse_settings,
    turn_kind,
)

from .session import DatabaseSession
from .workers import PROTOCOL, queue_of

QUEUE = "threads"
HIGHEST = 1_000_000
"""A row's priority for a thread with the priority 0; as in DBOS, smaller numbers come first."""
LOCK = "admission"
KEPT_BEGUN_S = 8 * 24 * 3600
"""How long the beginning of a thread is kept: longer than the period of any rate."""
CHILDREN = 16
"""Children that are taken at a time, which need no slot."""

Move = Callable[[list[str], str], None]
"""Moves turns, by their ids, to a queue."""


class TurnRows:
    """The turns of a schema. A transaction of *session* must not be open at a call."""

    def __init__(self, session: DatabaseSession, table: sql.Identifier) -> None:
        self._session = session
        self._status = table

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Yield whether this process alone may move turns in the block."""
        with self._session.transaction() as cursor:
            key = self._session.lock_key(LOCK)
            [(got,)] = cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [key]).fetchall()
            yield bool(got)

    def settings(self) -> QueueSettings:
        """Return the settings of the queues. Raises: DamagedError: they cannot be read."""
        found = self._session.query(
            "SELECT content FROM documents WHERE name = %s", [QUEUE_DOCUMENT]
        )
        return parse_settings(bytes(found[0][0]) if found else None)

    def waiting_kinds(self) -> list[TurnKind]:
        """Return the kinds of the turns that wait."""
        return [turn_kind(kind) for (kind,) in self._rows(WAITING_KINDS)]

    def waiting(self) -> dict[TurnKind, int]:
        """Return how many turns of each kind wait."""
        return {turn_kind(kind): count for kind, count in self._rows(COUNT_WAITING)}

    def load(self, settings: QueueSettings) -> StoreLoad:
        """Return what the workers drive."""
        numbers = [number for (number,) in self._session.query("SELECT number FROM workers")]
        running: Counter[TurnKind] = Counter()
        for counts in self.running(numbers).values():
            running.update(counts)
        return StoreLoad(running=running, begun=self._begun(settings))

    def running(self, numbers: Collection[int]) -> dict[int, Counter[TurnKind]]:
        """Return how many turns of each kind the workers of some sessions have."""
        found: dict[int, Counter[TurnKind]] = {number: Counter() for number in numbers}
        by_queue = {queue_of(number): number for number in numbers}
        for queue, kind, count in self._rows(COUNT_RUNNING, [list(by_queue)]):
            found[by_queue[queue]][turn_kind(kind)] += count
        return found

    def take(self, number: int, offer: WorkerOffer, move: Move, note: Callable[..., Any]) -> int:
        """Move turns that wait to the queue of a worker; return how many. Call it in `alone`.

        Args:
            note: carries out a statement at once, so that it holds also if this process dies.
        """
        if not self._session.query("SELECT 1 FROM workers WHERE number = %s", [number]):
            return 0  # another worker took this one for dead
        settings = self.settings()
        kinds = [str(kind) for kind in self.waiting_kinds() if offer.takes(kind, settings)]
        if not kinds:
            return 0
        load = self.load(settings)
        own = self.running([number])[number]
        free = offer.slots - sum(count for kind, count in own.items() if not kind.is_child)
        if free <= 0:
            kinds = [kind for kind in kinds if turn_kind(kind).is_child]
        rows = self._rows(FIRST_WAITING, [kinds, PROTOCOL, max(free, CHILDREN)])
        waiting = [
            WaitingTurn(
                id=workflow,
                kind=turn_kind(kind),
                priority=HIGHEST - priority,
                since=since,
                begun=begun,
            )
            for workflow, kind, priority, since, begun in rows
        ]
        chosen = admitted(waiting, load, settings, offer, free=max(free, 0))
        if not chosen:
            return 0
        rated = [one for one in chosen if settings.of(one.kind.flow).rate and not one.kind.is_later]
        if rated:
            note(
                "INSERT INTO begun_threads (workflow, flow) SELECT * FROM unnest(%s::text[], %s::text[])"
                " ON CONFLICT DO NOTHING",
                [[one.id for one in rated], [one.kind.flow for one in rated]],
            )
        # counted first: after a death in between it counts once
        move([one.id for one in chosen], queue_of(number))
        return len(chosen)

    def give_back(self, numbers: Collection[int], move: Move) -> None:
        """Move the turns of workers back to the queue of all. Call it in `alone`."""
        queues = [queue_of(number) for number in numbers]
        found = [workflow for (workflow,) in self._rows(OF_WORKERS, [queues])]
        if found:
            move(found, QUEUE)

    def forget_begun(self) -> None:
        """Delete beginnings that are older than the period of any rate."""
        self._session.query(
            "DELETE FROM begun_threads WHERE at < clock_timestamp() - make_interval(secs => %s)",
            [KEPT_BEGUN_S],
        )

    def pending_kinds(self) -> list[TurnKind]:
        """Return the kinds of all turns that wait or run."""
        return [turn_kind(kind) for (kind,) in self._rows(PENDING_KINDS, [PROTOCOL])]

    def _begun(self, settings: QueueSettings) -> Mapping[str, int]:
        rates = {name: one.rate for name, one in settings.flows.items() if one.rate is not None}
        if not rates:
            return {}
        return dict(
            self._session.query(BEGUN, [list(rates), [rate.seconds for rate in rates.values()]])
        )

    def _rows(
        self, statement: LiteralString, values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        composed = sql.SQL(statement).format(status=self._status)
        return self._session.query(composed, values)


# from kind to kind by the index, however many turns wait
WAITING_KINDS: LiteralString = """
WITH RECURSIVE kinds (kind) AS (
    (SELECT queue_partition_key FROM {status}
    WHERE queue_name = 'threads' AND status = 'ENQUEUED' AND queue_partition_key IS NOT NULL
    ORDER BY queue_partition_key LIMIT 1)
    UNION ALL
    SELECT (SELECT queue_partition_key FROM {status}
        WHERE queue_name = 'threads' AND status = 'ENQUEUED' AND queue_partition_key > kinds.kind
        ORDER BY queue_partition_key LIMIT 1)
    FROM kinds WHERE kinds.kind IS NOT NULL
)
SELECT kind FROM kinds WHERE kind IS NOT NULL
"""
FIRST_WAITING: LiteralString = """
SELECT found.workflow_uuid, wanted.kind, found.priority, found.created_at,
    EXISTS (SELECT FROM begun_threads WHERE workflow = found.workflow_uuid)
FROM unnest(%s::text[]) AS wanted (kind) CROSS JOIN LATERAL (
    SELECT workflow_uuid, priority, created_at FROM {status}
    WHERE queue_name = 'threads' AND status = 'ENQUEUED' AND queue_partition_key = wanted.kind
    AND application_version = %s
    ORDER BY priority, created_at, workflow_uuid LIMIT %s
) AS found
"""
COUNT_WAITING: LiteralString = """
SELECT queue_partition_key, count(*) FROM {status}
WHERE queue_name = 'threads' AND status = 'ENQUEUED' AND queue_partition_key IS NOT NULL GROUP BY 1
"""
COUNT_RUNNING: LiteralString = """
SELECT queue_name, queue_partition_key, count(*) FROM {status}
WHERE queue_name = ANY(%s) AND status IN ('ENQUEUED', 'PENDING')
AND queue_partition_key IS NOT NULL GROUP BY 1, 2
"""
OF_WORKERS: LiteralString = """
SELECT workflow_uuid FROM {status}
WHERE queue_name = ANY(%s) AND status IN ('ENQUEUED', 'PENDING')
"""
PENDING_KINDS: LiteralString = """
SELECT DISTINCT queue_partition_key FROM {status}
WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL
AND application_version = %s
"""
BEGUN: LiteralString = """
SELECT flow, count(*) FROM begun_threads
JOIN unnest(%s::text[], %s::integer[]) AS rates (rated, seconds) ON flow = rated
WHERE at > clock_timestamp() - make_interval(secs => seconds) GROUP BY flow
"""
