"""Turns of threads as rows, and the protocol of what runs those that a worker has taken.

A store has one table with a row for each turn: that of DBOS, or one of ours with the same columns
for an engine that keeps its own state elsewhere (`TurnTable`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from psycopg import sql
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass
from uncaged_engine.services.shared import Recorder, Turn

from .session import DatabaseSession

DBOS, RESTATE = "dbos", "restate"
"""Names of the engines."""
SETUP_LOCK = "dispatcher"
"""The lock under which an engine's tables are made, whichever it is."""
_TABLES: Mapping[str, str] = {RESTATE: "turns", DBOS: "workflow_status"}
_FIND = """
SELECT engine FROM unnest(%s::text[], %s::text[], %s::text[])
    WITH ORDINALITY AS known (engine, space, name, place)
WHERE EXISTS (
    SELECT FROM pg_namespace JOIN pg_class ON relnamespace = pg_namespace.oid
    WHERE nspname = space AND relname = name
) ORDER BY place LIMIT 1
"""
"""Of the catalogue, which also shows a schema that this user may not use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTurn:
    """A turn that is submitted. from_line: as in `Dispatcher.submit`."""

    bundle: BundleHash
    thread: ThreadId
    turn: Turn
    from_line: int

    @property
    def id(self) -> str:
        """The turn's id: the thread's, and for a later one the line's number behind it."""
        return f"{self.thread}-{self.from_line}" if self.from_line else self.thread


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenTurn:
    """A turn that a worker has taken. take: how often it was taken, by any worker."""

    id: str
    take: int
    bundle: str
    thread: str
    from_line: int

    @property
    def key(self) -> str:
        """Name of this take of the turn."""
        return f"{self.id}/{self.take}"


DriveTurn = Callable[[str, str, int, Recorder], str]
"""Drives the thread of a turn: bundle, thread, and the line from which on its finished steps are
recorded. Returns the word with which it was left; it never returns once the store is lost.
"""


class TurnRunner(Protocol):
    """Runner of the turns of one store. Its engine decides nothing about what was done."""

    schema: str
    rights: Mapping[str, str]
    """What a worker's user needs on the tables of the schema."""
    failures: tuple[type[Exception], ...]
    """Errors in a driven turn that mean that the store was lost."""

    @property
    def table(self) -> sql.Identifier:
        """The table with the turns."""

    def add(self, turn: NewTurn) -> None:
        """Add a turn to the queue of all; durable when this returns. Idempotent."""

    def start(self, number: int, drive: DriveTurn, listen: str | None) -> None:
        """Run the turns in the queue of the worker with this session's number, from now on.

        Args:
            listen: the address at which the engine reaches this worker.
        """

    def move(self, turns: list[str], queue: str) -> None:
        """Move turns that have not ended to a queue. In that of a worker they are run."""

    def attend(self, *, took: bool) -> None:
        """Do what there is to do beside the turns. Called after each look for turns.

        Args:
            took: the look found some.
        Raises:
            RunnerLacks: its engine cannot be reached.
        """

    def forget_workers(self, numbers: Collection[int]) -> None:
        """Remove what was kept for workers that have no turns left."""

    def forget(self, before_ms: int, progress: Callable[[int], None]) -> None:
        """As `Dispatcher.forget`."""

    def close(self) -> None:
        """Release the connections."""


class TurnTable:
    """The table with the turns of the store in one schema."""

    def __init__(self, session: DatabaseSession) -> None:
        self._session = session
        self._engine: str | None = None
        self._table: sql.Identifier | None = None

    def found(self) -> sql.Identifier | None:
        """Return the table, or None if no thread was run and no worker has started."""
        self._look()
        return self._table

    def engine(self) -> str | None:
        """Return the name of the engine that runs the turns; None as in `found`, unless one was
        chosen.
        """
        self._look()
        return self._engine

    def _look(self) -> None:
        if self._table is not None:  # it stays
            return
        schema = self._session.address.schema
        schemas = [schema_of(schema, engine) for engine in _TABLES]
        found = self._session.query(_FIND, [list(_TABLES), schemas, list(_TABLES.values())])
        if found:
            self._engine = str(found[0][0])
            self._table = table_of(schema, self._engine)


def table_of(schema: str, engine: str) -> sql.Identifier:
    """Return the table of an engine, for the store in a schema."""
    return sql.Identifier(schema_of(schema, engine), _TABLES[engine])


def schema_of(schema: str, engine: str) -> str:
    """Return the schema of an engine's tables, for the store in a schema."""
    return f"{schema}_{engine}"
