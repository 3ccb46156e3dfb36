"""Threads on a shared store, with real workers: one dies at a crash window, one in an effect."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql
from sqlalchemy.exc import DBAPIError
from testbed.answering import answering
from testbed.bundles import source
from testbed.documents import check_document
from testbed.foreground import at_window, environment
from testbed.postgres import PostgresServer
from testbed.restate import RestateServer
from testbed.windows import window
from uncaged_cluster.address import parse_address
from uncaged_cluster.store import open_store
from uncaged_cluster.turns import table_of
from uncaged_engine.api import Engine
from uncaged_engine.shared.dispatch import ExchangeReader, SharedStore
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend

from .conftest import Rows

UNRECORDED = window("the store has a step that the dispatcher does not know")
UNWRITTEN = window("submitted and never written; its worker gives it up")
CALLS = 6
DEADLY = f"/{CALLS - 2}"
"""Path of the request in which the second worker is killed."""
LOST = f"/{CALLS - 1}"
"""Path of the request in which the third worker loses its session."""
PATIENCE_S = 120


@dataclass
class CountingServer:
    """A web server that counts the requests. victim: a process to kill at the path `DEADLY`.
    cut: called once, at the path `LOST`.
    """

    requests: list[str] = field(default_factory=list)
    victim: subprocess.Popen[bytes] | None = None
    cut: Callable[[], None] | None = None
    port: int = 0

    def answer(self, path: str) -> None:
        self.requests.append(path)
        if path == DEADLY and self.victim is not None:
            self.victim.send_signal(signal.SIGKILL)
            self.victim.wait()
            self.victim = None
        if path == LOST and self.cut is not None:
            cut, self.cut = self.cut, None
            cut()


@contextmanager
def counting_server() -> Iterator[CountingServer]:
    counting = CountingServer()
    with answering(counting.answer) as counting.port:
        yield counting


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A thread after two deaths. requests: how often each path was asked for. follower: exit
    code and output of the process that started the thread. last: the worker that lost its session
    and ended the thread.
    """

    address: str
    schema: str
    engine: str
    requests: Counter[str]
    follower: tuple[int, str]
    last: subprocess.CompletedProcess[str]
    directory: Path

    @property
    def end(self) -> Any:
        """The follower's last line."""
        return json.loads(self.follower[1].splitlines()[-1])


@pytest.fixture(scope="module", params=["dbos", "restate"])
def scene(
    postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Scene]:
    """With DBOS, and with Restate. Some fifteen seconds: three workers. The first one dies with a
    step in the store that the runner does not know, the second in an effect, and the third loses
    its session.
    """
    directory = tmp_path_factory.mktemp("shared")
    schema = postgres.new_schema()
    address = postgres.address(schema)
    with counting_server() as server, ExitStack() as stack:
        restate = request.getfixturevalue("restate") if request.param == "restate" else None
        _fill(address, directory / "origin", server.port, restate)
        run = ("-m", "uncaged_cli", "run", "calls", "--store", address, "--json")
        follower = stack.enter_context(_process(directory / "person", *run, pipe=True))
        work = ("uncaged_cli", "work", "--store", address, "--slots", "2")
        dying = at_window(UNRECORDED, work[0], count=3)
        first = stack.enter_context(_process(directory / "first", *dying, *work[1:]))
        first.wait(PATIENCE_S)
        server.victim = stack.enter_context(_process(directory / "second", "-m", *work))
        server.victim.wait(PATIENCE_S)
        server.cut = lambda: _end_owners(postgres)
        last = _last_worker(address, directory / "last")
        output, _ = follower.communicate(timeout=PATIENCE_S)
        yield Scene(
            address=address,
            schema=schema,
            engine=request.param,
            requests=Counter(server.requests),
            follower=(follower.returncode, output.decode()),
            last=last,
            directory=directory,
        )


def test_a_thread_outlives_its_workers(scene: Scene) -> None:
    """The last worker ends it without an operator, and the process that started it gets the
    result. It lost its session in between, settled nothing then, and went on as a new worker.
    """
    events = _events(scene.last)
    check_document(["work", "--json"], scene.last.stdout)
    assert [(one["event"], one.get("status")) for one in events] == [
        ("driven", None),
        ("lost", None),
        ("driven", None),
        ("left", "completed"),
    ]
    assert scene.follower[0] == 0, scene.follower[1]
    assert scene.end["thread"]["status"] == "completed"
    assert scene.end["thread"]["steps"] == CALLS


def test_only_effects_in_flight_at_a_death_are_repeated(scene: Scene) -> None:
    """Counted where they happen: each once, and twice those in which a worker was lost."""
    repeated = (DEADLY, LOST)
    assert scene.requests == {f"/{n}": 2 if f"/{n}" in repeated else 1 for n in range(CALLS)}


def test_the_runner_has_the_steps_of_the_journal(
    scene: Scene, postgres: PostgresServer, request: pytest.FixtureRequest
) -> None:
    """Also the one of which it did not know: number, kind, and digest of the line. An invocation of
    Restate has those of one worker, which records the former ones' first.
    """
    thread = scene.end["thread"]["threadId"]
    turns = table_of(scene.schema, scene.engine)
    with postgres.connect() as rows:
        asked = sql.SQL("SELECT status FROM {} WHERE workflow_uuid = %s").format(turns)
        assert rows.execute(asked, [thread]).fetchall() == [("SUCCESS",)]
        if scene.engine == "dbos":
            found = _steps_of_dbos(rows, scene.schema, thread)
        else:
            found = _steps_of_restate(request.getfixturevalue("restate"), thread)
    with closing(open_store(scene.address, create=False, is_visible=True)) as store:
        entry = store.threads.locate(thread)
        reader = ExchangeReader()
        lines = store.threads.read(entry.bundle, entry.id)
        steps = [one for line in lines if (one := reader.read(line)) is not None]
    assert found == [{"seq": one.seq, "kind": one.kind, "digest": one.digest} for one in steps]
    assert len(found) == CALLS


def test_the_store_is_whole_and_a_copy_of_the_thread_is_proved(scene: Scene) -> None:
    """`store check` finds nothing, and `verify` replays it in a directory."""
    target = Engine.open(scene.directory / "back")
    with closing(open_store(scene.address, create=False, is_visible=True)) as store:
        assert check_store(store, progress=lambda _kind, _count: None).problems == []
        backend = DirectoryBackend(target.store)
        copy_store(store, backend, replace=True, progress=lambda _kind, _count: None)
    assert target.verify("latest").ok


@pytest.mark.slow
def test_a_thread_that_dbos_knows_otherwise_ends_no_worker(
    scene: Scene, postgres: PostgresServer
) -> None:
    """A backup of one of the two schemas was restored: the worker warns, leaves the thread and goes
    on. A worker that ended would leave it to the next one, and so on.
    """
    if scene.engine != "dbos":
        pytest.skip("an invocation of Restate begins with no step")
    thread = scene.end["thread"]["threadId"]
    with postgres.connect(options=f"-c search_path={scene.schema}_dbos") as rows:
        rows.execute(
            "UPDATE operation_outputs SET output = replace(output, 'digest', 'other')"
            " WHERE workflow_uuid = %s",
            [thread],
        )
        rows.execute(
            "UPDATE workflow_status SET status = 'ENQUEUED', queue_name = 'threads'"
            " WHERE workflow_uuid = %s",
            [thread],
        )
    events = _events(_last_worker(scene.address, scene.directory / "fourth"))
    assert [(one["event"], one.get("status")) for one in events] == [
        ("driven", None),
        ("warning", None),
        ("left", "interrupted"),
    ]
    assert "DBOS recorded" in events[1]["message"]


def test_a_starter_that_dies_leaves_no_thread(scene: Scene, postgres: PostgresServer) -> None:
    """It submits the thread before it writes it: nothing is there but a workflow, which a worker
    gives up.
    """
    words = ("run", "calls", "--store", scene.address, "--detach")
    with closing(open_store(scene.address, create=False, is_visible=True)) as store:
        before = store.threads.page(limit=10)
        dying = at_window(UNWRITTEN, "uncaged_cli")
        with _process(scene.directory / "person", *dying, *words) as starter:
            starter.wait(PATIENCE_S)
        assert store.threads.page(limit=10) == before
    turns = table_of(scene.schema, scene.engine)
    with postgres.connect() as rows:
        [(count,)] = rows.execute(
            sql.SQL("SELECT count(*) FROM {} WHERE status = 'ENQUEUED'").format(turns)
        ).fetchall()
    assert count == 1


@pytest.mark.slow
def test_dbos_waits_for_a_connection_if_the_server_has_none_left(postgres: PostgresServer) -> None:
    """The pool raises an error of psycopg, which DBOS tries again. One of the store would end the
    thread whose step was to be recorded.
    """
    from dbos._utils import retriable_postgres_exception  # 0.5 s
    from uncaged_cluster.runners.dbos_turns import dbos_engine

    user = postgres.new_schema()
    with postgres.connect() as rows:
        rows.execute(f"CREATE USER {user} CONNECTION LIMIT 0")
    address = parse_address(postgres.address("x", user=user), is_visible=True)
    with pytest.raises(DBAPIError, match="too many connections") as refused:
        dbos_engine(address).connect()
    assert retriable_postgres_exception(refused.value)


def _steps_of_dbos(rows: Rows, schema: str, thread: str) -> list[Any]:
    outputs = sql.SQL("SELECT output FROM {} WHERE workflow_uuid = %s ORDER BY function_id").format(
        sql.Identifier(f"{schema}_dbos", "operation_outputs")
    )
    return [json.loads(output) for (output,) in rows.execute(outputs, [thread])]


def _steps_of_restate(server: RestateServer, thread: str) -> list[Any]:
    """Return what the invocation that ended recorded; no other one is left."""
    invocations = server.query(
        "SELECT id, status, completion_result, idempotency_key FROM sys_invocation"
    )
    mine = [one for one in invocations if one["idempotency_key"].startswith(thread)]
    assert {one["status"] for one in mine} == {"completed"}
    [ended] = [one["id"] for one in mine if one["completion_result"] == "success"]
    journal = server.query(
        "SELECT id, index, entry_type, entry_json FROM sys_journal ORDER BY index"
    )
    return [
        json.loads(bytes(completion["Run"]["result"]["Success"]))
        for one in journal
        if one["id"] == ended and one["entry_type"] == "Notification: Run"
        for completion in [json.loads(one["entry_json"])["Notification"]["Completion"]]
    ]


def _last_worker(address: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a worker until no thread is left."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "uncaged_cli", "work", "--store", address),
            *("--slots", "2", "--until-idle", "--json"),
        ],
        env=_environment(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def _end_owners(postgres: PostgresServer) -> None:
    """End the sessions that own threads."""
    with postgres.connect() as rows:
        rows.execute(
            "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity"
            " WHERE pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')"
        )


def _events(worker: subprocess.CompletedProcess[str]) -> list[Any]:
    assert worker.returncode == 0, worker.stderr
    return [json.loads(line) for line in worker.stdout.splitlines()]


def _fill(address: str, directory: Path, port: int, restate: RestateServer | None) -> None:
    """Make the store from a directory with one flow of its own. restate: what runs its threads."""
    origin = Engine.open(directory)
    origin.add("calls", _calls(port), accept=lambda _: True)
    with closing(open_store(address, create=True, is_visible=True)) as store:
        backend = DirectoryBackend(origin.store)
        copy_store(backend, store, replace=False, progress=lambda _kind, _count: None)
        if restate is not None:
            assert isinstance(store, SharedStore)
            store.run_with_restate(restate.admin, restate.ingress)


def _calls(port: int) -> bytes:
    """A flow with `CALLS` requests."""
    body = f"""
    for n in range({CALLS}):
        yield {{"http": {{"url": f"http://127.0.0.1:{port}/{{n}}"}}}}
    return {{"success": True, "message": "done"}}
"""
    return source("calls", body, policy={"http": {"hosts": [f"127.0.0.1:{port}"], "private": True}})


@contextmanager
def _process(home: Path, *python: str, pipe: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """Run an interpreter with a store directory of its own; it is killed at the end. pipe: its
    standard output is read.
    """
    home.mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, *python],
        env=_environment(home),
        cwd=home,
        stdout=subprocess.PIPE if pipe else None,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _environment(home: Path) -> dict[str, str]:
    return {**environment(), "UNCAGED_WORKFLOW_HOME": str(home)}
