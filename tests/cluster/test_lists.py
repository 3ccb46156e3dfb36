"""Cost of lists of a shared store: what they import, and how many statements they need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from psycopg import sql
from testbed.postgres import PostgresServer
from testbed.stored_threads import started
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cluster.store import open_store

from .conftest import Rows

HEAVY = (
    *("dbos", "sqlalchemy", "pydantic", "yaml", "jsonschema", "rich", "zstandard", "playwright"),
    *(
        "uncaged_engine.cells.replay",
        "uncaged_engine.threads.forking",
        "uncaged_engine.state.index",
        "uncaged_engine.stores.directory.backend",
        "uncaged_cluster.dispatching",
    ),
)
"""In milliseconds of CPU: dbos with sqlalchemy 500, yaml 12, forking with replay 5, the index of a
directory with sqlite3 6, and the directory itself 6.
"""
WATCH = f"""
import sys
from uncaged_cli.main import run
code = run(sys.argv[1:])
print("seen:", code, [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
STATEMENTS = "SELECT xact_commit FROM pg_stat_database WHERE datname = %s"
MOST_STATEMENTS = 10


def command(words: list[str], address: str, home: Path) -> None:
    """Run a command in a process of its own, which must succeed without a heavy module."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *words],
        env={**os.environ, "UNCAGED_WORKFLOW_HOME": str(home), STORE_VARIABLE: address},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr.rpartition("seen: ")[2].strip() == "0 []", done.stderr


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """A database that no other test uses."""
    name = postgres.new_schema()
    with postgres.connect() as rows:
        rows.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield name
        rows.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def statements_in(rows: Rows, database: str) -> int:
    """Return how many statements, each of which is a transaction, were sent to a database. A
    session counts at its end.
    """
    while rows.execute(SESSIONS, [database]).fetchall() != [(0,)]:
        pass
    [(count,)] = rows.execute(STATEMENTS, [database]).fetchall()
    return int(count)


@pytest.mark.slow
def test_lists_need_few_statements_and_no_heavy_module(
    postgres: PostgresServer, database: str, tmp_path: Path
) -> None:
    """The statements of a list are as many for one thread as for forty."""
    address = postgres.address(postgres.new_schema(), database=database)
    with closing(open_store(address, create=True, is_visible=True)) as store:
        thread = started(store).thread
    command(["ps"], address, tmp_path)
    command(["thread", thread], address, tmp_path)
    counts = []
    # in another database, whose own statements do not count
    with postgres.connect(dbname="template1") as rows:
        for numbers in (range(0), range(2, 41)):
            with closing(open_store(address, create=False, is_visible=True)) as store:
                for number in numbers:
                    started(store, number)
            before = statements_in(rows, database)
            command(["threads"], address, tmp_path)
            counts.append(statements_in(rows, database) - before)
    assert counts[0] == counts[1] <= MOST_STATEMENTS
