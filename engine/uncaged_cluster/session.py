"""Connection to a store's database for statements, made again after a loss.

What a process owns is bound to its session: it holds an advisory lock on its number, which the
server releases when the session ends, whatever ended the process.
"""

from __future__ import annotations

import os
import socket
import threading
from _blake2 import blake2b
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from getpass import getuser
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from uncaged_bundles.errors import RefusedError, StorageError

from .address import ClusterAddress
from .problems import connect_problem, explained

CONNECT_TIMEOUT_S = 10
ANSWER_TIMEOUT_S = 300.0
WAKE_S = 0.1
"""How often a wait looks for an interrupt."""
OLDEST_SERVER = 13

APPLICATION = "uncaged-workflow"
MOST_NAME_CHARACTERS = 63
"""Of an application in PostgreSQL."""

_CONNECTION_OPTIONS: dict[str, Any] = {  # an address's own parameters come first
    "connect_timeout": CONNECT_TIMEOUT_S,
    "client_encoding": "utf8",
    # a host that is gone is noticed after 30 s, in any state of the connection
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
_SETTINGS = """
SELECT set_config('search_path', %s, false),
    set_config('lock_timeout', '5s', false), -- threads of execution share the session
    set_config('idle_in_transaction_session_timeout', '1min', false), -- of a frozen client
    set_config('standard_conforming_strings', 'on', false),
    CASE current_setting('synchronous_commit')
        WHEN 'off' THEN set_config('synchronous_commit', 'on', false) -- what is acknowledged stays
    END
"""

Cursor = psycopg.Cursor[tuple[Any, ...]]
Answer = TypeVar("Answer")


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that gives a server up which does not answer, though its host lives. answer_s:
    after so long; None for `ANSWER_TIMEOUT_S`.
    """

    answer_s: float | None = None

    def wait(
        self,
        gen: Generator[Any, Any, Answer],
        interval: float = WAKE_S,
        timeout: float | None = None,
    ) -> Answer:
        chosen_s = (self.answer_s or ANSWER_TIMEOUT_S) if timeout is None else timeout
        try:
            return super().wait(gen, interval, chosen_s)
        except psycopg.OperationalError:
            if timeout is None and self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()  # a late answer would be taken for that of the next statement
            raise


def connect(address: ClusterAddress) -> Connection:
    """Connect to the database; names without a schema are those of the store's schema.

    Raises:
        StorageError: it cannot be reached. RefusedError: the user may not, or the server is older
            than `OLDEST_SERVER`.
    """
    try:
        named = {"application_name": application_name()}
        chosen = {**named, **_CONNECTION_OPTIONS, **conninfo_to_dict(address.conninfo)}
        made = Connection.connect(autocommit=True, **chosen)
    except psycopg.OperationalError as exc:
        raise connect_problem(exc, address) from exc
    try:
        with explained(address):
            check_version(address, made.info.server_version)
            made.execute(_SETTINGS, [sql.Identifier(address.schema).as_string(made)])
    except BaseException:
        made.close()
        raise
    return made


def application_name() -> str:
    """Return the name of this process in the list of the server's sessions."""
    process = f", process {os.getpid()}"
    person = f"{APPLICATION} {_person()}@{socket.gethostname()}"
    plain = person.encode("ascii", "replace").decode()  # the server counts bytes
    return plain[: MOST_NAME_CHARACTERS - len(process)] + process


def _person() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a user id without a name
        return str(os.getuid())


def check_version(address: ClusterAddress, version: int) -> None:
    """Refuse a server that is too old. version: as libpq states it, 150004 for 15.4."""
    if version < OLDEST_SERVER * 10_000:
        raise RefusedError(
            f"{address}: the server is PostgreSQL {version // 10_000}; a store needs {OLDEST_SERVER} or newer: upgrade the server"
        )


class DatabaseSession:
    """A connection that several threads share, one statement or transaction at a time."""

    def __init__(self, address: ClusterAddress) -> None:
        self.address = address
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._number: int | None = None
        self._answer_s: float | None = None
        self._closed = False

    @contextmanager
    def transaction(self) -> Iterator[Cursor]:
        """Yield a cursor inside a transaction, committed at the end and rolled back on an error.
        A transaction within another one is a part of it.

        Raises:
            StorageError, RefusedError, DamagedError: what the server refuses.
        """
        with self._lock, explained(self.address):
            connection = self._connected()
            with connection.transaction(), connection.cursor(binary=True) as cursor:
                yield cursor

    def query(
        self, statement: LiteralString | sql.Composed, parameters: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """Carry out one statement, as a transaction of its own unless one is open, and return its
        rows. Raises: as `transaction`.
        """
        with self._lock, explained(self.address), self._connected().cursor(binary=True) as cursor:
            cursor.execute(statement, parameters)
            return cursor.fetchall() if cursor.description is not None else []

    def number(self) -> int:
        """Return this session's number, whose advisory lock it holds until it ends; another one
        after the connection was lost.
        """
        with self._lock:
            self._connected()
            if self._number is None:
                [(number,)] = self.query("SELECT nextval('session_numbers')")
                self.query("SELECT pg_advisory_lock(%s)", [self.lock_key(session_lock(number))])
                self._number = int(number)
            return self._number

    def give_up_after(self, answer_s: float) -> None:
        """Close the connection once a statement has no answer after *answer_s*."""
        with self._lock:
            self._answer_s = answer_s
            if self._connection is not None:
                self._connection.answer_s = answer_s

    def lives(self, number: int) -> bool:
        """Tell whether the session with this number has not ended. Call it inside a transaction,
        where it stays ended.
        """
        return number in self.living({number})

    def living(self, numbers: Collection[int]) -> set[int]:
        """Return those of some sessions' numbers whose sessions have not ended."""
        others = [number for number in numbers if number != self._number]
        if not others:
            return set(numbers)
        keys = [self.lock_key(session_lock(number)) for number in others]
        # shared: two who ask at the same time do not take each other for the owner
        free = self.query(
            "SELECT pg_try_advisory_xact_lock_shared(key) FROM unnest(%s::bigint[]) AS asked (key)",
            [keys],
        )
        ended = {number for number, (is_free,) in zip(others, free, strict=True) if is_free}
        return set(numbers) - ended

    def lock_key(self, name: str) -> int:
        """Return the key of an advisory lock of this schema."""
        return advisory_key(self.address.schema, name)

    def channel(self, kind: str, number: int | str) -> str:
        """Return the name of the channel that tells of new lines of a log, or of other news."""
        schema = blake2b(self.address.schema.encode(), digest_size=8).hexdigest()
        return f"uncaged_{schema}_{kind}_{number}"

    def close(self) -> None:
        """End the session, and with it what it owns. Idempotent."""
        with self._lock:
            self._closed = True
            self._number = None
            if self._connection is not None:
                self._connection.close()

    def _connected(self) -> Connection:
        if self._closed:
            raise StorageError(f"{self.address} was closed")
        if self._connection is None or self._connection.closed:
            self._number = None  # its lock ended with the session
            self._connection = connect(self.address)
            self._connection.answer_s = self._answer_s
        return self._connection


def advisory_key(schema: str, name: str) -> int:
    """Return the key of an advisory lock: 64 bits of a hash, since the locks of a database have one
    space of keys.
    """
    digest = blake2b(f"uncaged-workflow/{schema}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def session_lock(number: int) -> str:
    """Return the name of the advisory lock that a session holds on its number."""
    return f"session/{number}"
