"""Index of a conversation's named things: `conversations/ID.memory.sqlite3`.

It is derived from the log. Each look-up first adds what the log has since; a file that is missing,
damaged or ahead of its log is made anew.
"""

from __future__ import annotations

import sqlite3
from _blake2 import blake2b
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import StorageError
from uncaged_bundles.records import dataclass
from uncaged_engine.services.canonical import decode, encode

LAYOUT = 1
WAIT_S = 10.0
NEAREST = 20
_TABLES = """
    CREATE TABLE entities (
        seq INTEGER NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL,
        type TEXT NOT NULL, value TEXT NOT NULL, request TEXT NOT NULL, thread TEXT NOT NULL,
        PRIMARY KEY (seq, place)
    );
    CREATE INDEX by_name ON entities (folded, seq);
    CREATE TABLE progress (seq INTEGER NOT NULL, record TEXT NOT NULL);
    INSERT INTO progress VALUES (0, '');
"""
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedEntity:
    """A thing that a result named. seq: the number of the result's record in the log."""

    name: str
    type: str
    value: object
    seq: int
    request: str
    thread: str

    def document(self) -> dict[str, object]:
        """Return the thing as JSON, as a placeholder refers to it."""
        return {"name": self.name, "type": self.type, "value": self.value}


class EntityMemory:
    """The named things of one conversation."""

    def __init__(self, path: Path, records: Callable[[int], Iterable[Record]]) -> None:
        """Args: records: returns the log's records after a number."""
        self._path = path
        self._records = records

    def nearest(self, limit: int = NEAREST) -> list[RememberedEntity]:
        """Return the things that were named last, each once, the last one first."""
        with self._opened() as connection:
            rows = connection.execute(
                "SELECT name, type, value, MAX(seq * 1000 - place), seq, request, thread"
                " FROM entities GROUP BY folded, type ORDER BY 4 DESC LIMIT ?",
                (limit,),
            )
            return [_entity(row) for row in rows]

    def named(self, name: str, type: str | None = None) -> list[RememberedEntity]:
        """Return the things with this name in any case, the last one first; those with the same
        value once.
        """
        with self._opened() as connection:
            rows = connection.execute(
                "SELECT name, type, value, MAX(seq * 1000 - place), seq, request, thread"
                " FROM entities WHERE folded = ? AND (?2 IS NULL OR type = ?2)"
                " GROUP BY type, value ORDER BY 4 DESC",
                (name.casefold(), type),
            )
            return [_entity(row) for row in rows]

    def names(self, type: str | None = None) -> list[str]:
        """Return all names, or those of a type, the last one first."""
        with self._opened() as connection:
            rows = connection.execute(
                "SELECT name, MAX(seq * 1000 - place) FROM entities WHERE ?1 IS NULL OR type = ?1"
                " GROUP BY folded ORDER BY 2 DESC",
                (type,),
            )
            return [row[0] for row in rows]

    def types(self) -> list[str]:
        """Return the types of all things."""
        with self._opened() as connection:
            return [row[0] for row in connection.execute("SELECT DISTINCT type FROM entities")]

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open the index with everything in it that the log has."""
        try:
            try:
                connection = self._current()
            except sqlite3.DatabaseError as exc:
                if isinstance(exc, sqlite3.OperationalError) and "locked" in str(exc):
                    raise
                self._path.unlink(missing_ok=True)
                connection = self._current()
        except (OSError, sqlite3.Error) as exc:
            raise StorageError(
                f"{self._path}: the memory cannot be opened: {exc}; correct that and try again"
            ) from exc
        try:
            yield connection
        finally:
            connection.close()

    def _current(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=WAIT_S, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")  # another process waits here
            layout = connection.execute("PRAGMA user_version").fetchone()[0]
            if layout not in (0, LAYOUT):
                raise sqlite3.DatabaseError(f"layout {layout}")
            if layout == 0:
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {LAYOUT}")
            self._add_new(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _add_new(self, connection: sqlite3.Connection) -> None:
        """Add the records since the last one that was added; all of them if the log does not have
        that one any more, since its tail was cut.
        """
        seq, digest = connection.execute("SELECT seq, record FROM progress").fetchone()
        records = list(self._records(max(0, seq - 1)))
        if seq and (not records or _digest(records[0]) != digest):
            connection.execute("DELETE FROM entities")
            seq, records = 0, list(self._records(0))
        new = [record for record in records if record["seq"] > seq]
        if new:
            rows = [row for record in new for row in _rows(record)]
            connection.executemany("INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            last = new[-1]
            connection.execute(
                "UPDATE progress SET seq = ?, record = ?", (last["seq"], _digest(last))
            )


def _digest(record: Record) -> str:
    return blake2b(encode(record).encode(), digest_size=16).hexdigest()


def _rows(record: Record) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the things that a record names."""
    result = record.get("result")
    if not isinstance(result, Mapping):
        return
    thread = str(result.get("threadId") or "")
    for place, entity in enumerate(result.get("entities", ())):
        name, type = str(entity["name"]), str(entity.get("type") or "")
        value = encode(entity.get("value"))
        request = str(record.get("of") or "")
        yield (record["seq"], place, name, name.casefold(), type, value, request, thread)


def _entity(row: tuple[Any, ...]) -> RememberedEntity:
    name, type, value, _, seq, request, thread = row
    return RememberedEntity(
        name=name,
        type=type,
        value=decode(value.encode()),
        seq=seq,
        request=request,
        thread=thread,
    )
