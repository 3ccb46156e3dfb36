"""Versions of the tables: numbered SQL files, applied in order and noted in the table
``migrations``.
"""

from __future__ import annotations

from importlib.resources import files

from psycopg import sql
from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.version import __version__

from .session import Cursor, DatabaseSession

VERSION = 4
"""The version of the tables that this engine reads and writes."""


def ready(session: DatabaseSession, *, create: bool) -> None:
    """Bring the tables to `VERSION` if *create* is set, else check them. If they have that version,
    nothing is written, so that a standby server can be read.

    Raises:
        NotFoundError: the schema has no store, and *create* is not set.
        RefusedError: a newer engine made it, an older one did and *create* is not set, or the
            schema has tables of something else.
    """
    found = _version(session)
    if found < VERSION and create:
        _migrate(session)
    elif found == 0:
        raise NotFoundError(
            f"{session.address}: there is no store in this schema; `uncaged-workflow run`, `add`, `do` and `work` make one,"
            " and so does `uncaged-workflow store copy` to this address"
        )
    elif found < VERSION:
        raise RefusedError(
            f"{session.address}: its tables have version {found}, and this engine needs {VERSION}; upgrade it by a copy to this address"
        )


def has_schema(session: DatabaseSession, schema: str) -> bool:
    """Tell whether the database has a schema.

    Raises:
        RefusedError: it has, and this user may not use it: its tables would be as if they were not
            there.
    """
    found = session.query(
        "SELECT has_schema_privilege(oid, 'USAGE'), pg_get_userbyid(nspowner)::text"
        " FROM pg_namespace WHERE nspname = %s",
        [schema],
    )
    if found and not found[0][0]:
        raise RefusedError(
            f"{session.address}: this user may not use the schema {schema};"
            f" let its owner {found[0][1]!r} grant this user what it lacks, or connect as the owner"
        )
    return bool(found)


def check_may_make(session: DatabaseSession, schema: str) -> None:
    """Check that this user may make a schema, which PostgreSQL's own error does not say.

    Raises:
        RefusedError: it may not.
    """
    [(may_make, grant)] = session.query(
        "SELECT has_database_privilege(current_database(), 'CREATE'),"
        " format('GRANT CREATE ON DATABASE %%I TO %%I', current_database(), current_user)"
    )
    if not may_make:
        raise RefusedError(
            f"{session.address}: there is no schema {schema} yet, and this user may not make one;"
            f" the owner of the database allows it with `{grant}`"
        )


def _version(session: DatabaseSession) -> int:
    """Return the version of the schema's tables; 0 if there are none."""
    schema = session.address.schema
    if not has_schema(session, schema):
        return 0
    tables = session.query(
        "SELECT relname::text FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid"
        " WHERE relkind IN ('r', 'p') AND nspname = %s",
        [schema],
    )
    if not tables:
        return 0
    if ("migrations",) not in tables or ("thread_lines",) not in tables:
        raise RefusedError(
            f"{session.address}: the schema {schema!r} has tables of something else; choose another one with ?schema="
        )
    rows = session.query("SELECT version, engine FROM migrations ORDER BY version DESC LIMIT 1")
    version, engine = rows[0] if rows else (0, "")
    if version > VERSION:
        raise RefusedError(
            f"{session.address}: uncaged-workflow {engine} made its tables (version {version}),"
            f" and this is {__version__} (version {VERSION}); upgrade uncaged-workflow here"
        )
    return int(version)


def _migrate(session: DatabaseSession) -> None:
    with session.transaction() as cursor:
        # one process at a time; the lock ends with the transaction
        cursor.execute("SET LOCAL lock_timeout = '1min'")
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [session.lock_key("migrations")])
        if not has_schema(session, session.address.schema):
            check_may_make(session, session.address.schema)
            name = sql.Identifier(session.address.schema)
            cursor.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        for version in range(_version(session) + 1, VERSION + 1):
            _apply(cursor, version)


def _apply(cursor: Cursor, version: int) -> None:
    if version == 1:
        cursor.execute(
            "CREATE TABLE migrations (version integer PRIMARY KEY, engine text NOT NULL, applied timestamptz NOT NULL DEFAULT now())"
        )
    text = files("uncaged_cluster").joinpath("sql", f"{version:04}.sql").read_bytes()
    cursor.connection.execute(text)  # several statements, which the binary protocol does not take
    cursor.execute(
        "INSERT INTO migrations (version, engine) VALUES (%s, %s)", [version, __version__]
    )
