"""Bare DBOS on PostgreSQL: `python -m benchmarks.bare_dbos steps N | workflows COUNT STEPS SLOTS |
fill N`, in a process of its own. It prints milliseconds.

It has the settings that `uncaged_cluster` chose: without a ping of the connection before each use,
and with values as JSON. The variable BENCHMARK_DATABASE has the address of the database.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer
from uncaged_cluster.address import parse_address
from uncaged_cluster.news import OFTEN_S
from uncaged_cluster.runners.dbos_turns import dbos_engine

from .flows import VALUE_BYTES

SCHEMA = "bare"
QUEUE = "benchmark"
WARM_UP = 20
DATABASE = "BENCHMARK_DATABASE"


@DBOS.step()
def answer(number: int) -> str:
    return "v" * VALUE_BYTES if number >= 0 else ""


@DBOS.workflow()
def flow(steps: int) -> list[float]:
    """Return the moment before the first step after some, and the one after the last."""
    for number in range(WARM_UP):
        answer(number)
    begin = time.perf_counter()
    for number in range(steps):
        answer(number)
    return [begin, time.perf_counter()]


@DBOS.workflow()
def short(steps: int) -> list[float]:
    """Return the moments of begin and end."""
    begin = time.perf_counter()
    for number in range(steps):
        answer(number)
    return [begin, time.perf_counter()]


def steps(count: int) -> float:
    """Return the milliseconds of one step in a long workflow."""
    begin, end = flow(count)
    return (end - begin) * 1000 / count


def workflows(count: int, steps: int, slots: int) -> float:
    """Return the milliseconds from the first begin to the last end of queued workflows, *slots* at
    a time.
    """
    DBOS.register_queue(QUEUE, worker_concurrency=slots, polling_interval_sec=OFTEN_S)
    handles = [DBOS.enqueue_workflow(QUEUE, short, steps) for _ in range(count)]
    spans = [handle.get_result() for handle in handles]
    return (max(end for _, end in spans) - min(begin for begin, _ in spans)) * 1000


def fill(count: int) -> float:
    """Perform so many steps; the caller looks at the tables."""
    short(count)
    return 0.0


VERBS: dict[str, Callable[..., float]] = {"steps": steps, "workflows": workflows, "fill": fill}


def main(verb: str, *numbers: str) -> None:
    config: DBOSConfig = {
        "name": "benchmark",
        "system_database_engine": dbos_engine(
            parse_address(os.environ[DATABASE], is_visible=False)
        ),
        "dbos_system_schema": SCHEMA,
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()
    try:
        found = VERBS[verb](*map(int, numbers))
    finally:
        DBOS.destroy()
    sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
