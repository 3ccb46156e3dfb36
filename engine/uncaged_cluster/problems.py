"""Errors of PostgreSQL as errors that people see, each with its next step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg
from psycopg import errors
from uncaged_bundles.errors import (
    DamagedError,
    StorageError,
    UncagedError,
    UsageError,
)
from uncaged_engine.services.stores import StoreLacks, StoreRefused

from .address import ClusterAddress

T = TypeVar("T")
_UNDONE = ("53", "40001", "40P01", "57014")
"""Codes of statements that were not carried out: a resource lacked, or the server cancelled them.
"""


class ConnectionLost(StorageError):
    """The connection ended in mid-use; whether its last statement was carried out is unknown."""


class RunnerLacks(StorageError):
    """The engine that runs the turns of a store cannot be reached. Another time it may be."""


@contextmanager
def explained(address: ClusterAddress) -> Iterator[None]:
    """Raise the errors of libpq and of the server as `StorageError`, `StoreRefused` or
    `DamagedError`. An error that only a bug of ours can cause goes through.
    """
    try:
        yield
    except psycopg.Error as exc:
        found = _problem(exc, address)
        if found is None:
            raise
        raise found from exc


def connect_problem(exc: psycopg.OperationalError, address: ClusterAddress) -> UncagedError:
    """Return the error of a connection that was not made."""
    reason = _first_line(exc)
    if isinstance(exc, errors.ConnectionTimeout):
        return StorageError(
            f"{address}: the server does not answer; check the host, the port and what is between, then try again"
        )
    if exc.pgconn is not None and exc.pgconn.needs_password:
        return StoreRefused(
            f"{address}: the server asks for a password; put it into a file that PGPASSFILE names, or into PGPASSWORD"
        )
    if exc.pgconn is not None and exc.pgconn.used_password:
        return StoreRefused(
            f"{address}: {reason}; check the names of user and database, and the password in PGPASSFILE or PGPASSWORD"
        )
    return StorageError(
        f"{address}: {reason}; check that the server runs there, that the database exists and that the user may log in"
    )


def parsed(parse: Callable[[str], T], name: str, table: str) -> T:
    """Return a name that a row has.

    Raises:
        DamagedError: no store writes such a name.
    """
    try:
        return parse(name)
    except UsageError as exc:
        raise DamagedError(
            f"the table {table} has a row of the name {name[:80]!r}, which no store writes; remove the row"
        ) from exc


def _problem(exc: psycopg.Error, address: ClusterAddress) -> UncagedError | None:
    reason = _first_line(exc)
    match exc:
        case errors.InsufficientPrivilege():
            return StoreRefused(
                f"{address}: {reason}; let the schema's owner grant this user what it lacks, or connect as the owner"
            )
        case errors.ReadOnlySqlTransaction():
            return StoreRefused(
                f"{address}: read-only ({reason}); take the primary server's address, or reset default_transaction_read_only"
            )
        case errors.LockNotAvailable():
            return StoreLacks(
                f"{address}: another process holds a lock for too long ({reason}); try again, or look at pg_stat_activity"
            )
        case errors.DiskFull():
            return StoreLacks(
                f"{address}: the database's disk is full ({reason}); free space there"
            )
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.InvalidSchemaName():
            return DamagedError(
                f"{address}: a part of the store is missing ({reason}); restore the schema from a backup"
            )
        case errors.UniqueViolation():
            return DamagedError(
                f"{address}: a row is in the place of another one ({reason}); restore the schema from a backup"
            )
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return DamagedError(
                f"{address}: {reason}; restore the database from a backup, or copy what can be read with `store copy`"
            )
        case (
            errors.AdminShutdown()
            | errors.CrashShutdown()
            | errors.IdleInTransactionSessionTimeout()
        ):
            return ConnectionLost(
                f"{address}: the server ended the connection ({reason}); try again"
            )
        case psycopg.OperationalError() if exc.sqlstate is None:
            return ConnectionLost(f"{address}: the connection was lost ({reason}); try again")
        case psycopg.OperationalError():
            # of the server's resources: memory, connections, time
            kind = StoreLacks if (exc.sqlstate or "").startswith(_UNDONE) else StorageError
            return kind(f"{address}: {reason}; correct that on the server, then try again")
        case _:
            return None


def _first_line(exc: BaseException) -> str:
    return str(exc).strip().partition("\n")[0] or type(exc).__name__
