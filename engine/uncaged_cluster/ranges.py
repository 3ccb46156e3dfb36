"""Ranges of threads, each with a partition of their lines: one is made ahead of its threads, and
dropped once all of them have been removed.
"""

from __future__ import annotations

import re
from contextlib import suppress

import psycopg
from psycopg import sql
from uncaged_bundles.errors import UncagedError

from .session import Cursor, DatabaseSession

RANGE = 100_000
"""Threads whose lines are in one partition."""
LOOK_EVERY = 1000
"""How many threads are started between two looks for the next partition."""
_BOUND = re.compile(r"FROM \((MINVALUE|'\d+')\) TO \('(\d+)'\)")
_PARTITIONS = """
SELECT relname::text, pg_get_expr(relpartbound, pg_class.oid)
FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = 'thread_lines'::regclass
"""


def prepare_range(session: DatabaseSession, number: int, *, every: int = LOOK_EVERY) -> None:
    """Make the partition for the threads that follow those of a thread's range, now and then. Where
    the user may not, lines go to the partition of the rest.

    Args:
        number: of a thread that was started. every: look only for each so many threads.
    """
    if number % every:
        return
    following = number // RANGE + 1
    name = f"thread_lines_{following}"
    # another process makes it, or this user may not
    with suppress(UncagedError, psycopg.Error), session.transaction() as cursor:
        if (name,) in [found[:1] for found in cursor.execute(_PARTITIONS).fetchall()]:
            return
        cursor.execute("SET LOCAL lock_timeout = '2s'")
        table = sql.Identifier(name)
        # apart from its parent, which an attachment does not lock for readers and writers
        cursor.execute(sql.SQL("CREATE TABLE {} (LIKE thread_lines INCLUDING ALL)").format(table))
        cursor.execute(
            sql.SQL(
                "ALTER TABLE thread_lines ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})"
            ).format(table, sql.Literal(following * RANGE), sql.Literal((following + 1) * RANGE))
        )


def drop_empty_ranges(session: DatabaseSession) -> list[str]:
    """Drop the partitions of ranges whose threads were all removed; return their names. One for
    whose lock workers would wait longer than a second stays for the next time.
    """
    [(newest,)] = session.query("SELECT coalesce(max(number), 0) FROM threads")
    dropped = []
    for name, bound in session.query(_PARTITIONS):
        found = _BOUND.search(bound)
        if found is None or int(found[2]) > newest:
            continue
        low = 0 if found[1] == "MINVALUE" else int(found[1].strip("'"))
        with suppress(UncagedError, psycopg.Error), session.transaction() as cursor:
            if _is_used(cursor, low, int(found[2])):
                continue
            cursor.execute("SET LOCAL lock_timeout = '1s'")
            cursor.execute("LOCK TABLE ONLY thread_lines IN ACCESS EXCLUSIVE MODE")
            if _is_used(cursor, low, int(found[2])):  # by a transaction that was open just now
                continue
            cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
            dropped.append(name)
    return dropped


def _is_used(cursor: Cursor, low: int, high: int) -> bool:
    [(used,)] = cursor.execute(
        "SELECT EXISTS (SELECT 1 FROM threads WHERE number >= %s AND number < %s)", [low, high]
    ).fetchall()
    return bool(used)
