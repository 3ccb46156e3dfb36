"""Queues of a shared store with real workers: how many requests are under way at once is counted by
the web server that gets them.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from testbed.answering import answering
from testbed.bundles import source
from testbed.documents import check_document
from testbed.foreground import environment
from testbed.postgres import PostgresServer
from uncaged_bundles.errors import UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cli.main import run as run_words
from uncaged_cluster.store import open_store
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.shared.waiting import QueueState
from uncaged_engine.shared_engine import SharedEngine, shared_engine
from uncaged_engine.stores.copying import copy_store
from uncaged_engine.stores.directory.backend import DirectoryBackend

PATIENCE_S = 120
SLEEPER = """
    yield {"sleep": {"seconds": 604800}}
    return {"success": True, "message": "awake"}
"""
CALLER = """
    child = yield {"flow": {"name": "calls", "params": {}}}
    return {"success": True, "message": child["message"]}
"""


@dataclass
class Gate:
    """A web server that holds each request until the test lets it go. most: the largest number of
    requests under way at a time, by the first part of the path; "" for all.
    """

    lock: threading.Condition = field(default_factory=threading.Condition)
    now: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    seen: list[str] = field(default_factory=list)
    allowed: int = 0

    def hold(self, path: str) -> None:
        flow = path.split("/")[1]
        with self.lock:
            self.seen.append(path)
            for key in (flow, ""):
                self.now[key] += 1
                self.most[key] = max(self.most[key], self.now[key])
            self.lock.notify_all()
            self.lock.wait_for(lambda: self.allowed > 0, PATIENCE_S)
            self.allowed -= 1
            for key in (flow, ""):
                self.now[key] -= 1
            self.lock.notify_all()

    def allow(self, count: int) -> None:
        """Let requests go that are under way, or will be."""
        with self.lock:
            self.allowed += count
            self.lock.notify_all()

    def close(self) -> None:
        """Hold all further requests."""
        with self.lock:
            self.allowed = 0

    def wait(self, is_met: Callable[[], bool]) -> None:
        """Wait until a condition is met."""
        with self.lock:
            assert self.lock.wait_for(is_met, PATIENCE_S), (self.now, self.seen)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A shared store, which the variables of this process name."""

    gate: Gate
    directory: Path
    engine: SharedEngine

    def start(self, flow: str, count: int = 1, priority: int = 0) -> list[ThreadId]:
        """Start threads, and return their ids."""
        options = RunOptions(priority=priority)
        return [self.engine.run(flow, prompt="", options=options) for _ in range(count)]

    def queue(self, flow: str) -> QueueState:
        """Return the queue of a flow."""
        [found] = [one for one in self.engine.queues()[1] if one.flow == flow]
        return found

    def wait_until(self, flow: str, doing: str) -> None:
        """Wait until one thread of a flow is listed, and does this; none for an empty text."""
        wanted = [doing] if doing else []

        def is_met() -> bool:
            listed = {one.thread_id: one.name for one in self.engine.running()}
            working = self.engine.working()
            return wanted == [
                one["doing"] for one in working if listed.get(one["threadId"]) == flow
            ]

        wait_for(is_met)

    @contextmanager
    def worker(self, name: str, *options: str) -> Iterator[subprocess.Popen[str]]:
        home = self.directory / name
        home.mkdir(exist_ok=True)
        with subprocess.Popen(
            [sys.executable, "-m", "uncaged_cli", "work", "--json", *options],
            env={**environment(), "UNCAGED_WORKFLOW_HOME": str(home)},
            cwd=home,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def told(*words: str) -> str:
    """Run a command in this process, and return its standard output."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_words(words)
    assert code == 0, err.getvalue()
    return out.getvalue()


def document(*words: str) -> Any:
    text = told(*words, "--json")
    check_document([*words, "--json"], text)
    return json.loads(text)


def wait_for(is_met: Callable[[], bool]) -> None:
    """Wait until a state of the store is as it is to be."""
    give_up_s = time.monotonic() + PATIENCE_S
    while not is_met():
        assert time.monotonic() < give_up_s
        time.sleep(0.2)


@pytest.fixture(scope="module")
def scene(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    directory, gate = tmp_path_factory.mktemp("queues"), Gate()
    address = postgres.address(postgres.new_schema())
    with answering(gate.hold) as port, pytest.MonkeyPatch.context() as patch:
        origin = Engine.open(directory / "origin")
        policy = {"http": {"hosts": [f"127.0.0.1:{port}"], "private": True}}
        for name in ("calls", "bills", "trains"):
            body = f"""
    for n in range(2):
        yield {{"http": {{"url": "http://127.0.0.1:{port}/{name}/" + str(n), "timeout_s": 300}}}}
    return {{"success": True, "message": "done"}}
"""
            origin.add(name, source(name, body, policy=policy), accept=lambda _: True)
        caller = source("waits", CALLER, policy={"flow": {}})
        origin.add("waits", caller, accept=lambda _: True)
        sleeper = source("sleeps", SLEEPER, policy={"sleep": {}})
        origin.add("sleeps", sleeper, accept=lambda _: True)
        with closing(open_store(address, create=True, is_visible=True)) as store:
            backend = DirectoryBackend(origin.store)
            copy_store(backend, store, replace=False, progress=lambda _kind, _count: None)
        patch.setenv("UNCAGED_WORKFLOW_HOME", str(directory / "person"))
        patch.setenv(STORE_VARIABLE, address)
        with shared_engine(
            address, origin.store, is_visible=True, report=lambda _reason: None
        ) as engine:
            yield Scene(gate=gate, directory=directory, engine=engine)
        gate.allow(1000)


@pytest.mark.slow
def test_workers_keep_to_limits_and_drain(scene: Scene) -> None:
    """Two workers, from their start to their ends: slots, limits of a flow and of the store, rate,
    priority and needs, then a drain in the middle of effects. Some eight seconds.
    """
    gate, engine = scene.gate, scene.engine
    told("queue", "set", "calls", "--concurrency", "2")
    told("queue", "set", "bills", "--rate", "1/d", "--priority", "-1")
    told("queue", "set", "trains", "--needs", "gpu")
    calls = [*scene.start("calls", 2), *scene.start("calls", priority=7)]
    scene.start("bills", 2)
    scene.start("trains")
    assert scene.queue("calls").waiting == 3
    with scene.worker("first", "--slots", "1") as first:
        gate.wait(lambda: gate.now[""] == 1)
        assert [one["threadId"] for one in engine.working() if one["worker"]] == [calls[-1]]
        scene.wait_until("trains", "waits for a worker that offers gpu")
        with scene.worker("second", "--slots", "9"):
            gate.wait(lambda: gate.now[""] == 3)
            assert gate.now == {"calls": 2, "bills": 1, "": 3}
            assert scene.queue("calls").reason == "waits: 2 of at most 2 threads of calls run"
            assert "began in the last 86400 s" in scene.queue("bills").reason
            workers = document("queues")["workers"]
            assert [(one["slots"], one["threads"]) for one in workers] == [(1, 1), (9, 2)]

            # between its two steps, the thread of the first one is left to the second one
            assert "drains" in told("work", "--drain", workers[0]["worker"])
            assert _events(first, until="stopping") == [("driven", None), ("stopping", None)]
            told("queue", "set", "--concurrency", "1")
            gate.allow(3)
            assert _events(first) == [("left", "handed over")]
            wait_for(lambda: len(engine.workers()) == 1)
            gate.allow(100)
            wait_for(lambda: scene.queue("calls").waiting + scene.queue("calls").running == 0)
    assert gate.most["calls"] == 2
    for thread in calls:
        assert engine.thread(thread).summary.status == "completed"
    assert engine.verify(calls[-1]).ok
    assert gate.seen.count("/calls/0") == gate.seen.count("/calls/1") == len(calls)


@pytest.mark.slow
def test_a_worker_drains_while_threads_wait(scene: Scene) -> None:
    """A thread that sleeps for a week, and one that waits for a thread that it called, are left in
    these steps, which another worker goes on with. Some five seconds.
    """
    gate, engine = scene.gate, scene.engine
    told("queue", "reset", "--all")
    gate.close()
    [sleeper] = scene.start("sleeps")
    [caller] = scene.start("waits")
    with scene.worker("third", "--flows", "sleeps,waits,calls", "--slots", "2") as third:
        gate.wait(lambda: gate.now["calls"] == 1)
        scene.wait_until("sleeps", "sleep")
        third.terminate()
        _events(third, until="stopping")
        gate.allow(1)
        assert _events(third) == [("left", "handed over")]
    with scene.worker("fourth", "--flows", "sleeps,waits,calls"):
        gate.allow(100)
        wait_for(lambda: engine.thread(caller).summary.status == "completed")
        scene.wait_until("sleeps", "sleep")
        engine.kill(sleeper)
    assert engine.verify(caller).ok


@pytest.mark.slow
def test_a_worker_of_another_version_leaves_threads_alone(scene: Scene) -> None:
    """It is idle at once, though a thread of this version waits. Two seconds."""
    told("queue", "reset", "--all")
    [thread] = scene.start("sleeps")
    other = (
        "import uncaged_cluster.workers as workers; workers.PROTOCOL = 'uncaged-workflow-other';"
        "from uncaged_cli.entry import main; main()"
    )
    home = scene.directory / "other"
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", other, "work", "--until-idle", "--json"],
        env={**environment(), "UNCAGED_WORKFLOW_HOME": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    scene.wait_until("sleeps", "waits for a worker")
    scene.engine.kill(thread)


def _events(
    worker: subprocess.Popen[str], *, until: str | None = None
) -> list[tuple[str, str | None]]:
    """Return the next events of a worker, with their status: to a certain one, or to the end of the
    worker, which ends by itself.
    """
    assert worker.stdout is not None
    found: list[tuple[str, str | None]] = []
    for line in worker.stdout:
        event = json.loads(line)
        found.append((event["event"], event.get("status")))
        if event["event"] == until:
            return found
    assert until is None and worker.wait(PATIENCE_S) == 0
    return found


WRONG: list[tuple[list[str], str]] = [
    (["queue", "set", "calls"], "name a setting"),
    (["queue", "set", "--rate", "1/s"], "a setting of one flow"),
    (["queue", "set", "calls", "--agents", "3"], "a setting of all threads"),
    (["queue", "set", "calls", "--concurrency", "-1"], "no number"),
    (["queue", "set", "calls", "--rate", "0/s"], "no rate"),
    (["queue", "set", "calls", "--rate", "1/8d"], "no rate"),
    (["queue", "set", "calls", "--needs", "a b"], "no name of what a worker offers"),
    (["queue", "set", "Calls", "--priority", "1"], "flow name"),
    (["queue", "reset"], "name a flow"),
    (["work", "--offers", "a b"], "no name of what a worker offers"),
    (["work", "--drain"], "--all"),
    (["work", "--drain", "nobody"], "is no worker of the store"),
    (["work", "nobody"], "--drain"),
]


@pytest.mark.usefixtures("scene")
def test_a_wrong_setting_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is changed, and the message names what is wrong."""
    before = told("queues", "--json")
    for words, problem in WRONG:
        assert run_words(words) == UsageError.exit_code, words
        assert problem in capsys.readouterr().err
    assert told("queues", "--json") == before
