"""Workers of a store as rows: what each takes, from its start until another worker finds it dead.

Who is alive is a question to the lock of its session (`liveness`), not to its row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.version import __version__
from uncaged_engine.services.shared import (
    AgentPermits,
    QueueSettings,
    StoreWorker,
    WorkerOffer,
)

from .liveness import living_workers, worker_name
from .session import DatabaseSession

PROTOCOL = "uncaged-workflow-1"
"""DBOS's version of the application: that of the journals and of the workflow that drives a thread.
Workers of another one leave its threads alone.
"""
QUEUE_OF_WORKER = "worker-"


def queue_of(number: int) -> str:
    """Return the name of the queue with the threads that the worker of a session has taken."""
    return f"{QUEUE_OF_WORKER}{number}"


class WorkerRows:
    """The workers of a schema."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session

    def announce(self, offer: WorkerOffer, protocol: str) -> int:
        """Write the row of this session's worker; return the session's number."""
        number = self._session.number()
        flows = None if offer.flows is None else sorted(offer.flows)
        self._session.query(
            "INSERT INTO workers (number, name, engine, protocol, slots, offers, flows) VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [
                *(number, worker_name(self._session), __version__, protocol),
                *(offer.slots, sorted(offer.offers), flows),
            ],
        )
        return number

    def names(self) -> dict[str, int]:
        """Return the numbers of all workers, also dead ones, by name."""
        return {str(name): int(number) for name, number in self._session.query(_NAMES)}

    def living(self, protocol: str) -> list[StoreWorker]:
        """Return the living workers of a version, without the number of their threads."""
        rows = self._session.query(_WORKERS, [protocol])
        living = living_workers(self._session, {row[0] for row in rows})
        return [
            StoreWorker(
                name=name,
                offer=WorkerOffer(
                    slots=slots,
                    offers=frozenset(offers),
                    flows=None if flows is None else frozenset(flows),
                ),
                threads=0,
                engine=engine,
                since_ms=since_ms,
                drains=drains,
            )
            for name, slots, offers, flows, engine, since_ms, drains in rows
            if name in living
        ]

    def drain(self, names: Collection[str] | None) -> list[str]:
        """Mark workers (`ThreadQueue.drain`)."""
        chosen = set(self.names()) if names is None else set(names)
        living = sorted(living_workers(self._session, chosen))
        rows = self._session.query(
            "UPDATE workers SET drains = true WHERE name = ANY(%s) RETURNING name", [living]
        )
        return sorted(str(name) for (name,) in rows)

    def is_to_drain(self, number: int) -> bool:
        """Tell whether a worker is to drain; also if it has no row any more."""
        return not self._session.query(
            "SELECT 1 FROM workers WHERE number = %s AND NOT drains", [number]
        )

    def take_agent(self, most: int | None) -> bool:
        """Count an agent of this session's worker, unless *most* work in all workers."""
        number = self._session.number()
        with self._session.transaction() as cursor:
            # one at a time, since each counts what the others have committed
            key = self._session.lock_key("agents")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
            found = cursor.execute(
                "UPDATE workers SET agents = agents + 1 WHERE number = %s"
                " AND (%s::bigint IS NULL OR (SELECT sum(agents) FROM workers) < %s) RETURNING 1",
                [number, most, most],
            ).fetchall()
        return bool(found)

    def release_agent(self) -> None:
        """Count an agent of this session's worker no more."""
        self._session.query(
            "UPDATE workers SET agents = agents - 1 WHERE number = %s AND agents > 0",
            [self._session.number()],
        )

    def remove(self, numbers: Collection[int]) -> None:
        """Delete rows."""
        self._session.query("DELETE FROM workers WHERE number = ANY(%s)", [list(numbers)])


class WorkerAgents(AgentPermits):
    """Permits of agents, counted in the rows of the workers; those of a dead one end with its
    row.
    """

    def __init__(self, workers: WorkerRows, settings: Callable[[], QueueSettings]) -> None:
        self._workers = workers
        self._settings = settings

    def try_take(self) -> bool:
        return self._workers.take_agent(self._settings().agents)

    def release(self) -> None:
        with suppress(UncagedError):  # the worker ends without its store, and its permits with it
            self._workers.release_agent()


_NAMES = "SELECT name, number FROM workers ORDER BY number"
_WORKERS = """
SELECT name, slots, offers, flows, engine, (extract(epoch FROM since) * 1000)::bigint, drains
FROM workers WHERE protocol = %s ORDER BY number
"""
