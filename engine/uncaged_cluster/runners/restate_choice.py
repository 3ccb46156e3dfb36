"""Choice of Restate for the threads of a store, with the address of its server."""

from __future__ import annotations

import secrets
from importlib.resources import files
from urllib.parse import urlsplit

from psycopg import sql
from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.records import dataclass

from ..migrations import check_may_make, has_schema
from ..session import DatabaseSession
from ..turns import DBOS, RESTATE, SETUP_LOCK, TurnTable, schema_of

INGRESS_PORT = 8080
"""The port of a server's ingress, unless it is set otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestateAddress:
    """URLs of a server, without a slash at the end."""

    admin: str
    ingress: str


def restate_address(admin: str, ingress: str | None) -> RestateAddress:
    """Return the URLs of a server.

    Args:
        ingress: None for `INGRESS_PORT` of the same host.
    Raises:
        UsageError: one is no http or https URL, or has more than host, port and path.
    """
    url = _checked(admin)
    if ingress is None:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        ingress = f"{parts.scheme}://{host}:{INGRESS_PORT}"
    return RestateAddress(admin=url, ingress=_checked(ingress))


def _checked(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of the port
        is_whole = False
    if not is_whole:
        raise UsageError(f"{text!r} is no URL of Restate; give it as http://HOST:PORT")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(
            "a URL of Restate has a host, a port and a path only: all who read the store can read it"
        )
    return text.rstrip("/")


def choose_restate(session: DatabaseSession, address: RestateAddress) -> None:
    """Have Restate run the threads of a store, or note a new address of its server.

    Raises:
        RefusedError: DBOS runs them already.
    """
    schema = schema_of(session.address.schema, RESTATE)
    with session.transaction() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '1min'")
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [session.lock_key(SETUP_LOCK)])
        engine = TurnTable(session).engine()
        if engine == DBOS:
            raise RefusedError(
                f"{session.address}: DBOS runs its threads; `store copy` it to another schema for which Restate was chosen"
            )
        if engine is None:
            if not has_schema(session, schema):
                check_may_make(session, schema)
                cursor.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
            cursor.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.Identifier(schema)))
            text = files("uncaged_cluster").joinpath("sql", "restate.sql").read_bytes()
            cursor.connection.execute(text)
            cursor.execute(
                "INSERT INTO server VALUES (%s, %s, %s)",
                [f"uncaged-{secrets.token_hex(6)}", address.admin, address.ingress],
            )
        else:
            cursor.execute(
                sql.SQL("UPDATE {}.server SET admin = %s, ingress = %s").format(
                    sql.Identifier(schema)
                ),
                [address.admin, address.ingress],
            )


def chosen_address(session: DatabaseSession) -> RestateAddress:
    """Return the server of a store whose threads Restate runs."""
    schema = sql.Identifier(schema_of(session.address.schema, RESTATE))
    [(admin, ingress)] = session.query(
        sql.SQL("SELECT admin, ingress FROM {}.server").format(schema)
    )
    return RestateAddress(admin=admin, ingress=ingress)
