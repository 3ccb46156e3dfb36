"""Workers of a store in PostgreSQL whose threads send requests to a web server of the test, which
counts them and holds them.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncaged_bundles.errors import StorageError
from uncaged_bundles.ids import ThreadId, parse_thread_id
from uncaged_cluster.session import advisory_key, session_lock
from uncaged_cluster.store import open_store
from uncaged_engine.api import Engine
from uncaged_engine.shared_engine import SharedEngine, shared_engine
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend

from .answering import answering
from .bundles import source
from .foreground import environment
from .postgres import SUPERUSER, PostgresServer, postgres_server

if TYPE_CHECKING:
    import psycopg

PATIENCE_S = 100
SILENT_S = 4
"""So long may a worker be silent before others take its threads over."""
CALLS = 12
WORKER = ("-m", "uncaged_cli")
_SILENCE = """
SELECT extract(epoch FROM clock_timestamp() - state_change) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND (classid::bigint << 32) | objid::bigint = ANY(%s)
"""


@dataclass
class RequestGate:
    """Web server that counts requests by path, and holds them from number `held` of a thread on
    until it is opened.
    """

    held: int = CALLS
    seen: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    is_open: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str) -> None:
        with self.changed:
            self.seen.append(path)
            self.changed.notify_all()
        if int(path.rsplit("/", 1)[1]) >= self.held:
            self.is_open.wait(PATIENCE_S)

    def wait_for(self, count: int) -> None:
        """Wait until so many requests have come since the last `close`."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.seen) >= count, PATIENCE_S), self.seen

    def let_on(self, held: int) -> None:
        """Answer the requests that are held, and hold those from this number on."""
        self.held, before, self.is_open = held, self.is_open, threading.Event()
        before.set()

    def close(self, held: int) -> None:
        """Hold the requests from this number on, and forget the former ones."""
        self.is_open = threading.Event()
        self.seen.clear()
        self.held = held


@dataclass(frozen=True, kw_only=True)
class ClusterScene:
    """A store on a server of its own."""

    server: PostgresServer
    database: str
    schema: str
    gate: RequestGate
    directory: Path
    engine: SharedEngine

    @contextmanager
    def worker(
        self,
        name: str,
        address: str,
        python: tuple[str, ...] = WORKER,
        *more: str,
        silent_s: int | None = SILENT_S,
    ) -> Iterator[subprocess.Popen[str]]:
        """Run a worker until the end of the block; its lines are in NAME.log.

        Args:
            python: options of the interpreter, to the program. more: options of `work`. silent_s:
                `limits.workerSeconds`; None for the default.
        """
        home = self.directory / name
        home.mkdir(exist_ok=True)
        limits = "" if silent_s is None else f"limits: {{workerSeconds: {silent_s}}}\n"
        (home / "config.yaml").write_text(limits)
        with (
            (self.directory / f"{name}.log").open("w") as log,
            subprocess.Popen(
                [
                    sys.executable,
                    *python,
                    "work",
                    "--json",
                    "--slots",
                    "2",
                    "--store",
                    address,
                    *more,
                ],
                env={
                    **environment(),
                    "UNCAGED_WORKFLOW_HOME": str(home),
                    "PGPASSWORD": self.server.password,
                },
                cwd=home,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    def at_socket(self) -> str:
        return self.server.address(self.schema, database=self.database)

    def rows(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Connect to the tables of the store."""
        return self.server.connect(dbname=self.database, options=f"-c search_path={self.schema}")

    def silence_s(self, process: subprocess.Popen[str]) -> float:
        """Return the seconds since the last statement of a worker in its session; infinity if that
        has ended.
        """
        with self.rows() as rows:
            numbers = rows.execute(
                "SELECT number FROM workers WHERE name LIKE %s", [f"%.{process.pid}#%"]
            ).fetchall()
            keys = [advisory_key(self.schema, session_lock(number)) for (number,) in numbers]
            found = rows.execute(_SILENCE, [keys]).fetchone()
        return math.inf if found is None else float(found[0])

    def lines(self, thread: ThreadId) -> int:
        """Return how many lines a thread has in the database."""
        with self.rows() as rows:
            found = rows.execute("SELECT lines FROM threads WHERE name = %s", [thread]).fetchone()
        return 0 if found is None else int(found[0])

    def start(self, count: int) -> list[ThreadId]:
        return [self.engine.run("calls", prompt="") for _ in range(count)]

    def start_by(self, python: tuple[str, ...]) -> ThreadId:
        """Start a thread by the command line of another engine."""
        words = [sys.executable, *python, "run", "calls", "--detach", "--json", "--store"]
        done = subprocess.run(
            [*words, self.at_socket()],
            env={**environment(), "UNCAGED_WORKFLOW_HOME": str(self.directory / "person")},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return parse_thread_id(json.loads(done.stdout)["threadId"])

    def log(self, name: str) -> str:
        """Return what a worker printed."""
        return (self.directory / f"{name}.log").read_text()

    def events(self, name: str) -> list[str]:
        """Return the events that a worker printed."""
        lines = self.log(name).splitlines()
        return [json.loads(line).get("event", "") for line in lines if line.startswith("{")]

    def wait_until(self, is_met: Callable[[], bool], *logs: str) -> None:
        give_up_s = time.monotonic() + PATIENCE_S
        while not is_met():
            shown = [self.log(name) for name in logs]
            assert time.monotonic() < give_up_s, shown
            time.sleep(0.1)

    def wait_for_ends(self, threads: list[ThreadId]) -> None:
        """Wait until threads are completed, each step in its journal once."""

        def all_ended() -> bool:
            try:
                return all(self.engine.thread(one).end is not None for one in threads)
            except StorageError:  # of the test's own connection
                return False

        self.wait_until(all_ended, *(file.stem for file in self.directory.glob("*.log")))
        for thread in threads:
            view = self.engine.thread(thread)
            assert (view.summary.status, view.summary.steps) == ("completed", CALLS)
            assert self.engine.verify(thread).ok

    def check_repeats(self, threads: list[ThreadId], *names: str) -> None:
        """Each time that a thread was driven once more, the request that was open may have been
        sent once more: a GET may be.
        """
        driven = sum(self.events(name).count("driven") for name in names)
        assert set(self.gate.seen) == {f"/{one}/{n}" for one in threads for n in range(CALLS)}
        assert len(self.gate.seen) - len(threads) * CALLS <= driven - len(threads)


@contextmanager
def cluster_scene(
    directory: Path, *, database_of: Callable[[PostgresServer], str] = lambda _server: SUPERUSER
) -> Iterator[ClusterScene]:
    """Make a store with the flow `calls`; check it at the end.

    Args:
        database_of: makes the database of the store, and returns its name.
    """
    gate = RequestGate()
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server())
        port = stack.enter_context(answering(gate.answer))
        stack.callback(lambda: gate.let_on(CALLS))
        database, schema = database_of(server), server.new_schema()
        body = f"""
    for n in range({CALLS}):
        yield {{"http": {{"url": f"http://127.0.0.1:{port}/{{options['threadId']}}/{{n}}", "timeout_s": 300}}}}
    return {{"success": True, "message": "done"}}
"""
        origin = Engine.open(directory / "origin")
        policy = {"http": {"hosts": [f"127.0.0.1:{port}"], "private": True}}
        origin.add("calls", source("calls", body, policy=policy), accept=lambda _: True)
        address = server.address(schema, database=database)
        with closing(open_store(address, create=True, is_visible=True)) as store:
            backend = DirectoryBackend(origin.store)
            copy_store(backend, store, replace=False, progress=lambda _kind, _count: None)
        with shared_engine(
            address, origin.store, is_visible=True, report=lambda _reason: None
        ) as engine:
            yield ClusterScene(
                server=server,
                database=database,
                schema=schema,
                gate=gate,
                directory=directory,
                engine=engine,
            )
            with closing(open_store(address, create=False, is_visible=True)) as store:
                found = check_store(store, progress=lambda _kind, _count: None)
                assert found.problems == []
