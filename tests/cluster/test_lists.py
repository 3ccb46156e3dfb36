"""Cost of lists of a shared store: what they import, and how many statements they need."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
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
OF_COMMANDS = """
SELECT count(*) FROM pg_stat_activity
WHERE starts_with(application_name, 'uncaged-workflow ') AND backend_start > %s
"""
STATEMENTS = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'"
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


def statements_of(rows: Rows, words: list[str], address: str, home: Path) -> int:
    """Return how many statements a command sends, each of which is a transaction."""
    [(begin,)] = rows.execute("SELECT clock_timestamp()").fetchall()
    [(before,)] = rows.execute(STATEMENTS).fetchall()
    command(words, address, home)
    looks = 0
    while rows.execute(OF_COMMANDS, [begin]).fetchall() != [(0,)]:  # its session counts at its end
        looks += 1
    [(after,)] = rows.execute(STATEMENTS).fetchall()
    return int(after - before)


@pytest.mark.slow
def test_lists_need_few_statements_and_no_heavy_module(
    postgres: PostgresServer, address: str, tmp_path: Path
) -> None:
    """The statements of a list are as many for one thread as for forty."""
    with closing(open_store(address, create=True, is_visible=True)) as store:
        thread = started(store).thread
    command(["ps"], address, tmp_path)
    command(["thread", thread], address, tmp_path)
    # in another database, whose own statements do not count
    with postgres.connect(dbname="template1") as rows:
        few = statements_of(rows, ["threads"], address, tmp_path)
        with closing(open_store(address, create=False, is_visible=True)) as store:
            for number in range(2, 41):
                started(store, number)
        many = statements_of(rows, ["threads"], address, tmp_path)
    assert few == many <= MOST_STATEMENTS
