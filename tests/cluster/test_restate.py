"""Threads that Restate runs: its server dies, a person ends an invocation, and wrong settings."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest
from testbed.answering import answering
from testbed.bundles import source
from testbed.documents import check_document
from testbed.foreground import environment
from testbed.postgres import PostgresServer
from testbed.restate import RestateServer, restate_server
from uncaged_bundles.errors import EnvironmentLacks, RefusedError, StorageError, UsageError
from uncaged_cluster.runners.restate_choice import RestateAddress, restate_address
from uncaged_cluster.runners.restate_service import TurnService
from uncaged_cluster.store import PostgresStore, open_store
from uncaged_cluster.turns import TakenTurn
from uncaged_engine.api import Engine
from uncaged_engine.services.shared import DispatcherChoice, Recorder
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend

CALLS = 3
PATIENCE_S = 120
HASTY = """
import sys
from uncaged_cluster.runners import restate_worker
restate_worker.UNHEARD_S = 1.0
from uncaged_cli.main import run
sys.exit(run(sys.argv[1:]))
"""
"""A command that soon looks for the invocations of its turns."""


def command(address: str, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "uncaged_cli", *words],
        env=variables(address, home),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def variables(address: str, home: Path) -> dict[str, str]:
    named = {"UNCAGED_WORKFLOW_HOME": str(home), "UNCAGED_WORKFLOW_STORE": address}
    return {**environment(), **named}


@contextmanager
def worker(address: str, home: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    home.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HASTY, "work", "--json", *options],
        env=variables(address, home),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def next_event(process: subprocess.Popen[str], name: str) -> dict[str, object]:
    """Wait for an event of a worker."""
    assert process.stdout is not None
    for line in process.stdout:
        event: dict[str, object] = json.loads(line)
        if event["event"] == name:
            return event
    raise AssertionError(f"the worker ended without {name!r}")


def add_flow(address: str, directory: Path, port: int) -> None:
    """Add a flow with `CALLS` requests."""
    body = f"""
    for n in range({CALLS}):
        yield {{"http": {{"url": f"http://127.0.0.1:{port}/{{n}}"}}}}
    return {{"success": True, "message": "done"}}
"""
    policy = {"http": {"hosts": [f"127.0.0.1:{port}"], "private": True}}
    origin = Engine.open(directory)
    origin.add("calls", source("calls", body, policy=policy), accept=lambda _: True)
    with closing(open_store(address, create=True, is_visible=True)) as store:
        backend = DirectoryBackend(origin.store)
        copy_store(backend, store, replace=False, progress=lambda _kind, _count: None)


@pytest.mark.slow
def test_a_thread_outlives_its_server_and_its_invocation(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """A person ends the invocation in the first effect, and the server dies in the second one.
    Nothing is repeated, and the worker takes no threads while there is no server.
    """
    address = postgres.address(postgres.new_schema())
    requests: list[str] = []
    asked, allowed = threading.Semaphore(0), threading.Semaphore(0)

    def hold(path: str) -> None:
        requests.append(path)
        asked.release()
        allowed.acquire(timeout=PATIENCE_S)

    with restate_server() as server, answering(hold) as port:
        add_flow(address, tmp_path / "origin", port)
        chosen = ("store", "dispatcher", address, "--restate", server.admin)
        done = command(address, tmp_path / "person", *chosen, "--ingress", server.ingress, "--json")
        check_document(["store", "dispatcher", "--json"], done.stdout)
        with worker(address, tmp_path / "worker") as process:
            thread = command(
                address, tmp_path / "person", "run", "calls", "--detach"
            ).stdout.strip()
            assert asked.acquire(timeout=PATIENCE_S)
            [invocation] = [one["id"] for one in server.query("SELECT id FROM sys_invocation")]
            server.kill(invocation)
            allowed.release()
            assert asked.acquire(timeout=PATIENCE_S)
            server.end()
            other = command(address, tmp_path / "person", "run", "calls", "--detach").stdout.strip()
            told = next_event(process, "warning")
            assert "Restate does not answer" in str(told)
            server.begin()
            allowed.release(100)
            for one in (thread, other):
                left = command(address, tmp_path / "person", "thread", one, "--follow")
                assert left.returncode == 0, left
            command(address, tmp_path / "person", "work", "--drain", "--all")
            assert process.wait(PATIENCE_S) == 0
        assert sorted(requests) == sorted(2 * [f"/{n}" for n in range(CALLS)])
        found = server.query("SELECT status, completion_result FROM sys_invocation")
        assert {one["status"] for one in found} == {"completed"}
        assert [one["completion_result"] for one in found].count("success") == 2
        assert httpx2.get(f"{server.admin}/deployments").json()["deployments"] == []


@pytest.mark.slow
def test_a_worker_takes_the_address_of_a_dead_one(
    postgres: PostgresServer, restate: RestateServer, tmp_path: Path
) -> None:
    """Restate keeps the deployment's id then, and the dead worker's is not to be removed."""
    address = postgres.address(postgres.new_schema())
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    with answering(lambda _path: None) as port:
        add_flow(address, tmp_path / "origin", port)
        with closing(open_store(address, create=False, is_visible=True)) as store:
            assert isinstance(store, PostgresStore)
            store.run_with_restate(restate.admin, restate.ingress)
        for number in range(3):  # each finds the one before it dead, after its own start
            with worker(address, tmp_path / str(number), "--listen", listen) as process:
                for _ in range(2):
                    done = command(address, tmp_path / "person", "run", "calls")
                    assert done.returncode == 0, done.stderr
                    time.sleep(1.5)
                process.kill()


def test_a_worker_without_its_server_ends_with_the_reason(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    address = postgres.address(postgres.new_schema())
    with closing(open_store(address, create=True, is_visible=True)) as store:
        assert isinstance(store, PostgresStore)
        assert store.runs_with() is None
        store.run_with_restate("http://127.0.0.1:1", "http://127.0.0.1:2/")
        assert store.runs_with() == DispatcherChoice(
            name="restate", admin="http://127.0.0.1:1", ingress="http://127.0.0.1:2"
        )
        store.run_with_restate("http://127.0.0.1:3/", None)
        assert store.runs_with() == DispatcherChoice(
            name="restate", admin="http://127.0.0.1:3", ingress="http://127.0.0.1:8080"
        )
    done = command(address, tmp_path / "person", "work")
    assert done.returncode == StorageError.exit_code
    assert "Restate does not answer at http://127.0.0.1:3" in done.stderr
    assert "Traceback" not in done.stderr
    shown = command(address, tmp_path / "person", "store", "dispatcher", address)
    assert shown.stdout == "Restate, admin http://127.0.0.1:3, ingress http://127.0.0.1:8080\n"
    with (
        answering(lambda _path: None) as port,
        closing(open_store(address, create=False, is_visible=True)) as store,
    ):
        assert isinstance(store, PostgresStore)
        store.run_with_restate(f"http://127.0.0.1:{port}", None)
        other = command(address, tmp_path / "person", "work")
    assert other.returncode == StorageError.exit_code
    assert f":{port}/version is not Restate's" in other.stderr and "Traceback" not in other.stderr


def test_a_store_whose_threads_dbos_runs_stays_with_it(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """A thread would wait in a queue that no worker looks at."""
    address = postgres.address(postgres.new_schema())
    done = command(address, tmp_path / "person", "work", "--until-idle")
    assert done.returncode == 0, done.stderr
    with closing(open_store(address, create=False, is_visible=True)) as store:
        assert isinstance(store, PostgresStore)
        assert store.runs_with() == DispatcherChoice(name="dbos")
        with pytest.raises(RefusedError, match="DBOS runs its threads"):
            store.run_with_restate("http://127.0.0.1:9070", None)
    done = command(address, tmp_path / "person", "work", "--listen", "127.0.0.1:0")
    assert done.returncode == UsageError.exit_code
    assert "DBOS needs none" in done.stderr


def test_a_worker_drives_no_turn_that_it_has_not_taken(restate: RestateServer) -> None:
    """Who reaches the ingress can call its handler."""
    driven: list[TakenTurn] = []

    def drive(turn: TakenTurn, _record: Recorder) -> str:
        driven.append(turn)
        return "completed"

    service = TurnService("uncaged-test-1", drive)
    with closing(service):
        uri = service.serve("127.0.0.1:0")
        httpx2.post(f"{restate.admin}/deployments", json={"uri": uri}).raise_for_status()
        url = f"{restate.ingress}/uncaged-test-1/drive"
        bodies: list[object] = [{"key": "01ARZ3NDEKTSV4RRFFQ69G5FAV/1"}, {"key": {}}, ["key"], None]
        for body in bodies:
            refused = httpx2.post(url, json=body, timeout=PATIENCE_S)
            assert refused.is_error and "has not taken" in refused.text
    assert driven == []


@pytest.mark.parametrize(
    "listen", ["", "here", "127.0.0.1", "127.0.0.1:70000", "0.0.0.0:0", "[::]:0", "*:0", ":1"]
)
def test_a_wrong_address_of_a_worker_is_refused(listen: str) -> None:
    with pytest.raises(UsageError, match="--listen"):
        TurnService("uncaged-test-2", lambda *_: "").serve(listen)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(EnvironmentLacks, match="choose another --listen"):
        TurnService("uncaged-test-3", lambda *_: "").serve("192.0.2.1:0")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "restate:9070",
        "ftp://restate",
        "http://",
        "http://restate:0",
        "http://restate:port",
        "http://user:word@restate:9070",
        "http://restate:9070?key=word",
    ],
)
def test_a_wrong_url_is_refused_without_its_secret(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        restate_address(url, None)
    assert "word" not in str(refused.value)
    with pytest.raises(UsageError):
        restate_address("http://restate:9070", url)


def test_the_ingress_is_beside_the_admin_api() -> None:
    assert restate_address("http://[::1]:9070/", None) == RestateAddress(
        admin="http://[::1]:9070", ingress="http://[::1]:8080"
    )
