"""Processor time of lists beside many threads in a PostgreSQL store, as whole commands, and what
their statements read without an index.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from statistics import median
from typing import Any

from psycopg import Cursor, sql
from uncaged_bundles.ids import BundleHash, ThreadId, new_thread_id
from uncaged_cluster.address import parse_address
from uncaged_cluster.ranges import prepare_range
from uncaged_cluster.session import DatabaseSession
from uncaged_engine.stores.endings import ending_of

from .bench import Bench, Figure
from .cluster_site import STAYS, STEPS, ClusterSite, cluster_site
from .listing import BORN_MS, sealed_lines
from .starting import command
from .table import Row

THREADS, QUICK_THREADS = 1_000_000, 10_000
EFFECTS = 5
LIVE, SLOTS = 10, 4
"""Threads that run or wait beside the ended ones, and how many of them run."""
REACH_MS = 200.0
RANGE, BATCH = 100_000, 10_000
"""Threads of a partition of lines, and of a copy into the database."""
SLOW = frozenset(("PYTHONDONTWRITEBYTECODE",))
SMALL = 1000
"""A table of so many rows, as the newest partition is, may be read as a whole."""
STATISTICS_S = 2.0
"""After so long a session's statistics are in the tables."""
VERBS: Mapping[str, Sequence[str]] = {
    "`threads`": ["threads"],
    "`threads --status failed -n 20`": ["threads", "--status", "failed", "-n", "20"],
    "`ps`": ["ps"],
    "`thread` of an ended one": ["thread", "{thread}"],
}


def lists(bench: Bench) -> Sequence[Row]:
    """Measure user and system time of the process of each command, in turn."""
    count = QUICK_THREADS if bench.quick else THREADS
    spent: dict[str, list[float]] = {title: [] for title in VERBS}
    with (
        bench.directory() as directory,
        cluster_site(directory) as site,
        site.worker(SLOTS) as worker,
    ):
        site.wait([ended := site.start(STEPS, EFFECTS)])
        fill(site, ended, count)
        live = [site.start(STAYS, 0) for _ in range(LIVE)]
        worker.wait_for_thread(live[SLOTS - 1])
        scanned = scanned_rows(site)
        for attempt in range(len(bench.rounds(15)) + 1):
            for title, words in VERBS.items():
                cpu_ms = command_ms(site, [word.format(thread=ended) for word in words])
                if attempt:  # the first one may also write bytecode
                    spent[title].append(cpu_ms)
        scanned = scanned_rows(site) - scanned
    bare_ms = [
        _process_ms([sys.executable, "-c", "import psycopg"], os.environ) for _ in bench.rounds(7)
    ]
    return (
        *(
            Row(
                figure="cluster-lists",
                title=f"{title} beside {count:,} threads, processor time",
                values=tuple(values),
                unit="ms",
                baseline=f"{median(bare_ms):.0f} ms `python -c 'import psycopg'`",
                reach=REACH_MS,
                missed="three quarters of it load psycopg; other processes on these processors add to it",
            )
            for title, values in spent.items()
        ),
        Row(
            figure="cluster-lists",
            title="rows that the commands read without an index",
            values=(scanned,),
            unit="",
            baseline="`seq_tup_read` of threads, lines, notes and workflows",
            reach=0,
            exact=True,
            missed="a statement scans a table that grows with the threads",
        ),
    )


def fill(site: ClusterSite, like: ThreadId, count: int) -> None:
    """Write ended threads of the flow of *like*, each with the row that DBOS keeps of it.

    like: the only thread of the store, which ended.
    """
    with site.server.connect(options=f"-c search_path={site.schema}") as rows:
        found = rows.execute("SELECT bundle, number FROM threads WHERE name = %s", [like])
        [(bundle, base)] = found.fetchall()
        with closing(DatabaseSession(parse_address(site.address, is_visible=False))) as session:
            for number in range(base, base + count, RANGE):
                prepare_range(session, number, every=1)
        with rows.transaction(), rows.cursor() as cursor:
            for first in range(1, count + 1, BATCH):
                _copy_threads(cursor, bundle, base, range(first, min(first + BATCH, count + 1)))
            cursor.execute(
                "INSERT INTO thread_notes SELECT number, '{}' FROM threads WHERE number > %s",
                [base],
            )
            cursor.execute(
                "SELECT setval('start_order', %s), setval(pg_get_serial_sequence('threads', 'number'), %s)",
                [count, base + count],
            )
            cursor.execute(
                sql.SQL(_WORKFLOWS).format(
                    sql.Identifier(f"{site.schema}_dbos", "workflow_status")
                ),
                [like, base],
            )
        rows.execute("VACUUM ANALYZE")


_WORKFLOWS = """
INSERT INTO {0} SELECT made.* FROM {0} AS one, threads, LATERAL jsonb_populate_record(
    one, jsonb_build_object('workflow_uuid', threads.name, 'created_at', threads.ended_ms)
) AS made
WHERE one.workflow_uuid = %s AND threads.number > %s
"""


def _copy_threads(
    cursor: Cursor[tuple[Any, ...]], bundle: BundleHash, base: int, numbers: Iterable[int]
) -> None:
    heads, lines = [], []
    for number in numbers:
        thread = new_thread_id(BORN_MS + number, number.to_bytes(10, "big"))
        sealed, digest = sealed_lines(bundle, thread, number, steps=0)
        ending, size_bytes = ending_of(sealed[-1]), sum(map(len, sealed))
        head = (base + number, thread, bundle, number, False, False, len(sealed), size_bytes)
        heads.append((*head, digest, STEPS, ending.word, ending.ended_ms))
        lines += [(base + number, position, line) for position, line in enumerate(sealed)]
    for statement, values in ((_COPY_HEADS, heads), (_COPY_LINES, lines)):
        with cursor.copy(statement) as copy:
            for value in values:
                copy.write_row(value)


_COPY_HEADS = (
    "COPY threads (number, name, bundle, place, by_thread, archived, lines, size_bytes,"
    " digest, flow, ending, ended_ms) FROM STDIN"
)
_COPY_LINES = "COPY thread_lines (log, position, line) FROM STDIN"


def scanned_rows(site: ClusterSite) -> int:
    """Return how many rows of the tables that grow with the threads were read by scans so far."""
    time.sleep(STATISTICS_S)
    with site.server.connect() as rows:
        found = rows.execute(
            "SELECT coalesce(sum(seq_tup_read), 0)::bigint FROM pg_stat_all_tables"
            " WHERE schemaname LIKE %s AND n_live_tup > %s"
            " AND (relname LIKE 'thread%%' OR relname = 'workflow_status')",
            [f"{site.schema}%", SMALL],
        ).fetchone()
    return int(found[0]) if found else 0


def command_ms(site: ClusterSite, words: Sequence[str]) -> float:
    """Return the milliseconds of processor time of a command that succeeds."""
    more = {
        "UNCAGED_WORKFLOW_HOME": str(site.directory / "origin"),
        "UNCAGED_WORKFLOW_STORE": site.address,
    }
    environment = {name: value for name, value in os.environ.items() if name not in SLOW}
    return _process_ms([*command(), *words], {**environment, **more})


def _process_ms(words: Sequence[str], environment: Mapping[str, str]) -> float:
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{words[1]} ended with {process.returncode}")
    return (used.ru_utime + used.ru_stime) * 1000


FIGURES = (Figure(name="cluster-lists", measure=lists),)
