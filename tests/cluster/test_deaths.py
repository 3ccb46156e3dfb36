"""Workers that lose the network or the database while they drive threads, or whose clock is wrong:
each effect is counted by the web server that gets it, and compared with the journals.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from testbed.answering import answering
from testbed.bundles import source
from testbed.foreground import environment
from testbed.postgres import PostgresServer, postgres_server
from testbed.stalling import stalling_proxy
from uncaged_bundles.errors import StorageError
from uncaged_bundles.ids import ThreadId
from uncaged_cluster.store import open_store
from uncaged_engine.api import Engine
from uncaged_engine.shared_engine import SharedEngine, shared_engine
from uncaged_engine.stores.checking import check_store
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend

PATIENCE_S = 100
SILENT_S = 4
"""So long may a worker be silent before others take its threads over."""
CALLS = 12
WORKER = ("-m", "uncaged_cli")
AHEAD = (
    "-c",
    "import sys, time; now = time.time_ns; time.time_ns = lambda: now() + 3600 * 10**9\n"
    "from uncaged_cli.main import main\nsys.exit(main(sys.argv[1:]))",
)
"""The command line with a clock that is an hour ahead."""

pytestmark = [pytest.mark.slow, pytest.mark.needs("postgres")]


@dataclass
class Gate:
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

    def close(self, held: int) -> None:
        """Hold the requests from this number on, and forget the former ones."""
        self.is_open.clear()
        self.seen.clear()
        self.held = held


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A store on a server of its own."""

    server: PostgresServer
    schema: str
    gate: Gate
    directory: Path
    engine: SharedEngine

    @contextmanager
    def worker(
        self, name: str, address: str, python: tuple[str, ...] = WORKER
    ) -> Iterator[subprocess.Popen[str]]:
        """Run a worker until the end of the block; its lines are in NAME.log."""
        home = self.directory / name
        home.mkdir(exist_ok=True)
        (home / "config.yaml").write_text(f"limits: {{workerSeconds: {SILENT_S}}}\n")
        with (
            (self.directory / f"{name}.log").open("w") as log,
            subprocess.Popen(
                [sys.executable, *python, "work", "--json", "--slots", "2", "--store", address],
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
        return self.server.address(self.schema)

    def start(self, count: int) -> list[ThreadId]:
        return [self.engine.run("calls", prompt="") for _ in range(count)]

    def events(self, name: str) -> list[str]:
        """Return the events that a worker printed."""
        lines = (self.directory / f"{name}.log").read_text().splitlines()
        return [json.loads(line).get("event", "") for line in lines if line.startswith("{")]

    def wait_until(self, is_met: Callable[[], bool], *logs: str) -> None:
        give_up_s = time.monotonic() + PATIENCE_S
        while not is_met():
            shown = [(self.directory / f"{name}.log").read_text() for name in logs]
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


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    directory, gate = tmp_path_factory.mktemp("deaths"), Gate()
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server())
        port = stack.enter_context(answering(gate.answer))
        stack.callback(gate.is_open.set)
        schema = server.new_schema()
        body = f"""
    for n in range({CALLS}):
        yield {{"http": {{"url": f"http://127.0.0.1:{port}/{{options['threadId']}}/{{n}}", "timeout_s": 300}}}}
    return {{"success": True, "message": "done"}}
"""
        origin = Engine.open(directory / "origin")
        policy = {"http": {"hosts": [f"127.0.0.1:{port}"], "private": True}}
        origin.add("calls", source("calls", body, policy=policy), accept=lambda _: True)
        address = server.address(schema)
        with closing(open_store(address, create=True, is_visible=True)) as store:
            backend = DirectoryBackend(origin.store)
            copy_store(backend, store, replace=False, progress=lambda _kind, _count: None)
        with shared_engine(
            address, origin.store, is_visible=True, report=lambda _reason: None
        ) as engine:
            yield Scene(server=server, schema=schema, gate=gate, directory=directory, engine=engine)
            with closing(open_store(address, create=False, is_visible=True)) as store:
                found = check_store(store, progress=lambda _kind, _count: None)
                assert found.problems == []


def test_a_worker_behind_a_split_network_is_replaced_and_comes_back(scene: Scene) -> None:
    """Nothing gets through in either direction, and no connection is closed. Then the network is
    whole again, with the bytes that were under way. Some twelve seconds.
    """
    gate = scene.gate
    gate.close(held=CALLS // 2)
    user, password = "postgres", scene.server.password
    assert password
    with stalling_proxy(scene.server.port) as proxy:
        address = f"postgresql://{user}@127.0.0.1:{proxy.port}/postgres?schema={scene.schema}"
        with scene.worker("apart", address) as apart:
            [thread] = scene.start(1)
            gate.wait_for(CALLS // 2 + 1)
            proxy.passes.clear()
            with scene.worker("near", scene.at_socket()):
                gate.wait_for(CALLS // 2 + 2)  # the open request, once more
                gate.is_open.set()
                scene.wait_for_ends([thread])
                scene.check_repeats([thread], "apart", "near")
                scene.wait_until(lambda: "lost" in scene.events("apart"), "apart")
            proxy.passes.set()
            # it is a worker again, and the only one
            again = scene.start(1)
            scene.wait_for_ends(again)
            assert apart.poll() is None
    assert scene.events("apart").count("driven") >= 2


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGQUIT])
def test_threads_outlive_a_restart_of_the_database(scene: Scene, by: signal.Signals) -> None:
    """A fast one, which ends the sessions, and an immediate one, which is a crash: what was
    acknowledged is there, and the same processes go on as new workers.
    """
    gate = scene.gate
    gate.close(held=CALLS // 2)
    with (
        scene.worker("one", scene.at_socket()) as one,
        scene.worker("two", scene.at_socket()) as two,
    ):
        threads = scene.start(3)
        gate.wait_for(3 * (CALLS // 2 + 1))
        scene.server.restart(by)
        gate.is_open.set()
        scene.wait_for_ends(threads)
        assert one.poll() is None and two.poll() is None
        assert "lost" in scene.events("one") and "lost" in scene.events("two")
    scene.check_repeats(threads, "one", "two")


def test_clocks_an_hour_apart_hold_nothing_up(scene: Scene) -> None:
    """A worker with a clock an hour ahead is killed in an effect; one with the right clock takes
    the thread over, and neither takes the other for dead.
    """
    gate = scene.gate
    gate.close(held=CALLS // 2)
    with (
        scene.worker("ahead", scene.at_socket(), AHEAD) as ahead,
        ExitStack() as stack,
    ):
        [thread] = scene.start(1)
        gate.wait_for(CALLS // 2 + 1)
        stack.enter_context(scene.worker("right", scene.at_socket()))
        later = scene.start(2)  # they fill both workers
        gate.wait_for(3 * (CALLS // 2 + 1))
        ahead.kill()
        gate.is_open.set()
        scene.wait_for_ends([thread, *later])
    stamps = [record.get("timestamp", 0) for record in scene.engine.thread(thread).records]
    assert stamps != sorted(stamps)
    scene.check_repeats([thread, *later], "ahead", "right")
