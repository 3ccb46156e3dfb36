"""A store in PostgreSQL with real workers, and bare DBOS on the same server, for the benchmarks.

The server is that of the tests: in a temporary directory, without flushes to disk, so that both
sides pay for statements and rows alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psycopg import sql
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.shared.dispatch import SharedStore
from uncaged_engine.shared.opening import opened_shared
from uncaged_engine.shared_engine import SharedEngine, shared_engine
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend
from uncaged_engine.stores.opening import opened

from . import flows
from .laboratory import MAX_STEPS, timestamp_of
from .starting import command

if TYPE_CHECKING:
    from testbed.postgres import PostgresServer

TESTS = Path(__file__).resolve().parent.parent / "tests"
PATIENCE_S = 600.0
POLL_S = 0.2
STEPS = "steps"
"""The flow whose prompt is the number of effects with a value of `flows.VALUE_BYTES`."""
WAITS_200 = "waits"
"""The flow whose prompt is the number of effects that wait 200 ms."""
STAYS = "stays"
"""The flow whose one effect waits a day."""
_WAITS = """\
    for number in range(int(input["prompt"])):
        yield {"null": {"sleep_s": 0.2}}
    return {"success": True, "message": "done"}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process of `uncaged-workflow work`."""

    process: subprocess.Popen[str]

    def events(self) -> Iterator[Mapping[str, Any]]:
        """Yield what it prints, until it ends."""
        yield from map(json.loads, self.process.stdout or ())

    def wait_for_thread(self, thread: ThreadId) -> None:
        """Return once it drives a thread."""
        next(one for one in self.events() if (one["event"], one["threadId"]) == ("driven", thread))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSite:
    """A store with the flows of the benchmarks, opened from this process."""

    server: PostgresServer
    address: str
    directory: Path
    engine: SharedEngine
    store: SharedStore

    @property
    def schema(self) -> str:
        return self.address.partition("schema=")[2]

    @contextmanager
    def worker(self, slots: int) -> Iterator[Worker]:
        """Run a worker; it takes threads once this is entered. It is killed at the end."""
        words = ["work", "--json", "--store", self.address, "--slots", str(slots)]
        environment = {**os.environ, "UNCAGED_WORKFLOW_HOME": str(self.directory / "worker")}
        with subprocess.Popen(
            [*command(), *words],
            env=environment,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                started = "" if process.stderr is None else process.stderr.readline()
                if not started.startswith("worker of"):
                    raise RuntimeError(f"the worker did not start: {started}")
                yield Worker(process=process)
            finally:
                process.kill()

    @contextmanager
    def workers(self, number: int, slots: int) -> Iterator[None]:
        """Run some workers."""
        with ExitStack() as stack:
            for _ in range(number):
                stack.enter_context(self.worker(slots))
            yield

    def start(self, flow: str, prompt: int) -> ThreadId:
        options = RunOptions(max_steps=MAX_STEPS, environment={}, directory=self.directory)
        return self.engine.run(flow, prompt=str(prompt), options=options)

    def wait(self, threads: Sequence[ThreadId]) -> None:
        """Return once no thread is pending."""
        end = time.monotonic() + PATIENCE_S
        while self.store.queue.pending(threads):
            if time.monotonic() > end:
                raise TimeoutError(f"threads did not end within {PATIENCE_S:.0f} s")
            time.sleep(POLL_S)

    def stamps(self, threads: Sequence[ThreadId]) -> list[list[int]]:
        """Return the milliseconds of each line of each thread, by its workers' clocks."""
        return [[timestamp_of(line) for line in self.lines(thread)] for thread in threads]

    def lines(self, thread: ThreadId) -> list[bytes]:
        """Return a thread's lines."""
        with self.server.connect(options=f"-c search_path={self.schema}") as rows:
            found = rows.execute(
                "SELECT line FROM thread_lines JOIN threads ON log = number WHERE name = %s ORDER BY position",
                [thread],
            ).fetchall()
        return [bytes(line) for (line,) in found]

    def bare(self, what: str, *numbers: int) -> float:
        """Return what bare DBOS takes, in milliseconds, in a process of its own."""
        words = [sys.executable, "-m", f"{__package__}.bare_dbos", what, *map(str, numbers)]
        address = self.address.partition("&schema=")[0]
        done = subprocess.run(
            words,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "BENCHMARK_DATABASE": address},
            cwd=TESTS.parent,
        )
        return float(done.stdout.split()[-1])

    def size(self, schemas: Sequence[str]) -> tuple[int, int]:
        """Return rows and bytes of all tables of some schemas: `pg_total_relation_size`, with
        indexes and what is stored beside.
        """
        with self.server.connect() as rows:
            tables = rows.execute(
                "SELECT nspname, relname, pg_total_relation_size(pg_class.oid)"
                " FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid"
                " WHERE relkind = 'r' AND nspname = ANY(%s)",
                [list(schemas)],
            ).fetchall()
            count = sql.SQL("SELECT count(*) FROM {}")
            counted = [
                rows.execute(count.format(sql.Identifier(*name))).fetchone() for *name, _ in tables
            ]
        return sum(one[0] for one in counted if one), sum(size for *_, size in tables)


@contextmanager
def cluster_site(directory: Path) -> Iterator[ClusterSite]:
    """Start a server, and make a store with the flows of the benchmarks.

    Raises:
        RuntimeError: no PostgreSQL server is installed.
    """
    sys.path.append(str(TESTS))  # the server of the tests, which are beside the benchmarks
    from testbed.postgres import postgres_server, programs

    if programs() is None:
        raise RuntimeError("PostgreSQL is not installed (Debian: apt install postgresql)")
    (directory / "worker").mkdir()
    with postgres_server() as server:
        address = server.address("bench")
        origin = Engine.open(directory / "origin")
        for name, body in ((STEPS, flows.STEPS), (WAITS_200, _WAITS), (STAYS, flows.WAITS)):
            origin.add(name, flows.source(name, body), accept=lambda _: True)
        with opened(address, create=True, is_visible=False) as store:
            copy_store(
                DirectoryBackend(origin.store),
                store,
                replace=False,
                progress=lambda _kind, _count: None,
            )
        with (
            shared_engine(
                address, origin.store, is_visible=False, report=lambda _reason: None
            ) as engine,
            opened_shared(address, is_visible=False) as shared,
        ):
            yield ClusterSite(
                server=server, address=address, directory=directory, engine=engine, store=shared
            )
