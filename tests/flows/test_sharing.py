"""Threads of one bundle share a worker and a sandbox process, and do not notice each other."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from testbed.bundles import COUNT, PLANNED, granted, source
from testbed.processes import await_end, end_workers, workers_of
from testbed.steering import finish, intent_of, settle, wait_for
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.threads.verify import verify
from uncaged_engine.worker import address, client

pytestmark = pytest.mark.slow

SLEEPER = source("sleeper", "    yield {'null': {'sleep_s': 600}}\n")
CLIENT = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine

engine = Engine(Store.open(Path(sys.argv[1])))
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    print(engine.run("sleeper", prompt=str(number)), flush=True)
"""
CLIENTS, EACH = 20, 10


def test_runs_that_twenty_processes_begin_at_once_share_a_worker_and_none_is_lost(
    engine: Engine,
) -> None:
    """Runs of all processes begin at one moment; every id that a caller got is a live thread of the
    one worker. A thousand requests at once: tests/faults/test_races.py.
    """
    store, bundle = engine.store, granted(engine.store, SLEEPER)
    words = [sys.executable, "-c", CLIENT, str(store.root), str(EACH)]
    clients = [
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(CLIENTS)
    ]
    for one in clients:
        assert one.stdin is not None
        one.stdin.write(b"go\n")
        one.stdin.flush()
    told: list[str] = []
    for one in clients:
        out, err = one.communicate(timeout=240)
        assert one.returncode == 0, err.decode()
        told += out.decode().split()
    assert len(set(told)) == CLIENTS * EACH
    answer = client.request(store, bundle.hash, {"op": "list"}, start=False)
    assert answer is not None
    assert {one["threadId"] for one in answer["threads"]} == set(told)
    assert [worker.pid for worker in workers_of(store.root)] == [answer["pid"]]
    end_workers(store.root)
    assert {one.status for one in engine.threads()} == {"interrupted"}
    assert len(engine.threads()) == CLIENTS * EACH


GLOBAL = source(
    "counter",
    """
    global calls
    calls += 1
    seen.append(options["threadId"])
    heard = []
    for number in range(input["params"].get("n", 3)):
        heard.append((yield {"null": {"value": [calls, len(seen), number]}}))
        if input["params"].get("kind") == "mutate":
            calls += 100
            seen.append("x")
    return {"success": True, "message": "done", "data": heard}
""",
    head="calls = 0\nseen = []\n",
)


def test_a_global_that_one_thread_changes_is_its_own(engine: Engine) -> None:
    """Each thread's bundle is executed into a namespace of its own: both journals are what they
    would be alone, and both verify.
    """
    granted(engine.store, GLOBAL)
    threads = [
        engine.run("counter", prompt="", params={"n": 40, "kind": kind})
        for kind in ("mutate", "look") * 3
    ]
    for thread, kind in zip(threads, ("mutate", "look") * 3, strict=True):
        data = finish(engine, thread)["data"]
        assert data[-1] == ([1 + 39 * 100, 40, 39] if kind == "mutate" else [1, 1, 39])
        assert engine.verify(thread).ok


LOOPING = source(
    "looping",
    """
    first = yield {"null": {"value": 1, "mark": True}}
    while input["params"].get("kind") == "loop":
        pass
    second = yield {"null": {"value": first + 1}}
    yield {"null": {"sleep_s": input["params"]["n"]}}
    return {"success": True, "message": str(second)}
""",
)


def test_an_endless_loop_reaches_its_limit_alone(engine: Engine) -> None:
    """The culprit ends at the limit of a computation; its performed step is kept; those beside it
    finish and verify.
    """
    engine.store.config_path.write_text("limits: {bundleSeconds: 0.5}\n")
    granted(engine.store, LOOPING)
    waiting = [engine.run("looping", prompt="", params={"n": 600}) for _ in range(3)]
    for thread in waiting:
        wait_for(engine, thread, intent_of(3))
    culprit = engine.run("looping", prompt="", params={"n": 0, "kind": "loop"})
    others = [engine.run("looping", prompt="", params={"n": 0}) for _ in range(5)]
    assert settle(engine, culprit)["status"] == "limit"
    end = engine.thread(culprit).end
    assert end is not None
    assert end["limit"] == "bundleSeconds"
    assert "step 2" in end["message"]
    assert engine.thread(culprit).summary.steps == 1
    for thread in others:
        assert finish(engine, thread)["message"] == "2"
        assert engine.verify(thread).ok
    for thread in waiting:
        assert engine.thread(thread).summary.status == "running"
        engine.kill(thread)
        assert settle(engine, thread)["status"] == "killed"
        assert engine.verify(thread).ok


SET = source(
    "sets",
    """
    words = {"".join(chr(97 + (i * j) % 26) for j in range(1, 6)) for i in range(200)} | {b"x", (1, "a"), frozenset("abc")}
    for word in words:
        yield {"null": {"value": sorted(word) if isinstance(word, frozenset) else str(word)}}
    return {"success": True, "message": str(len(words))}
""",
)


@pytest.mark.needs("bubblewrap")
def test_a_bundle_that_iterates_a_set_replays_alike_in_twenty_fresh_sandboxes(
    engine: Engine,
) -> None:
    """The order of a set is fixed by the sandbox, whichever it is."""
    bundle = granted(engine.store, SET)
    thread = engine.run("sets", prompt="")
    finish(engine, thread)
    path = engine.store.data_path(bundle.hash, thread)
    for number in range(20):
        prefer = ("bubblewrap", "landlock")[number % 2]
        verdict = verify(engine.store, bundle.hash, thread, path, prefer=prefer, deadline_s=20)
        assert verdict.ok, verdict.message
        assert verdict.mechanism == prefer


def test_a_worker_leaves_soon_after_its_last_thread(engine: Engine) -> None:
    """By itself, with its socket gone; the next request starts another."""
    bundle = granted(engine.store, COUNT)
    finish(engine, engine.run("count", prompt="", params={"n": 1}))
    answer = client.request(engine.store, bundle.hash, {"op": "list"}, start=True)
    assert answer is not None
    assert answer["threads"] == []
    assert await_end(answer["pid"])
    assert not address.socket_path(engine.store, bundle.hash).exists()
    finish(engine, engine.run("count", prompt="", params={"n": 1}))


def test_a_worker_s_death_leaves_a_socket_that_harms_nobody(engine: Engine) -> None:
    """A worker ended by SIGKILL leaves the file of its socket without a listener; the next worker
    takes its place.
    """
    granted(engine.store, PLANNED)
    bundle = granted(engine.store, COUNT)
    finish(engine, engine.run("count", prompt="", params={"n": 1}))
    end_workers(engine.store.root)
    assert address.socket_path(engine.store, bundle.hash).exists()
    finish(engine, engine.run("count", prompt="", params={"n": 1}))


def test_a_store_deep_in_the_file_system_is_served(tmp_path: Path) -> None:
    """A path that is too long for a socket goes through a short directory of the user's own."""
    store = Store.open(tmp_path / ("d" * 60) / ("e" * 60) / "store")
    engine = Engine(store)
    bundle = granted(store, COUNT)
    try:
        finish(engine, engine.run("count", prompt="", params={"n": 2}))
        socket = address.socket_path(store, bundle.hash)
        assert not socket.is_relative_to(store.root)
        assert len(os.fsencode(socket)) <= address.MAX_SOCKET_PATH_BYTES
    finally:
        assert end_workers(store.root) == []
        address.socket_path(store, bundle.hash).unlink(missing_ok=True)


JUNK = [
    b"\n",
    b"{}\n",
    b"[]\n",
    b'{"op":"pause"}\n',
    b'{"op":"kill","threadId":7}\n',
    b"\xff\xfe\n",
    b"[" * 200_000 + b"\n",
]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_a_request_that_makes_no_sense_harms_nobody(engine: Engine, junk: bytes) -> None:
    """The worker answers with an error, or hangs up, and goes on with its threads."""
    bundle = granted(engine.store, SLEEPER)
    thread = engine.run("sleeper", prompt="")
    connection = client.connect(engine.store, bundle.hash)
    assert connection is not None
    with connection:
        connection.sendall(junk)
        assert b'"error"' in connection.recv(1 << 16)
    assert engine.thread(thread).summary.status == "running"
    engine.kill(thread)
    assert settle(engine, thread)["status"] == "killed"


def test_a_worker_outlives_the_caller_that_started_it(engine: Engine) -> None:
    """A worker whose report of readiness is never read listens all the same, prints nothing, and
    serves later callers.
    """
    bundle = granted(engine.store, COUNT)
    starting = client.Launching(engine.store, bundle.hash)
    starting.close()  # as if the caller had been killed
    finish(engine, engine.run("count", prompt="", params={"n": 1}))
    report = address.report_path(engine.store, bundle.hash)
    assert not report.exists() or report.read_bytes() == b""


def test_an_earlier_worker_s_report_is_not_taken_for_a_new_one_s(engine: Engine) -> None:
    """A worker once died of a bug; ten callers that start a worker at the same moment are all
    served by the one that lives.
    """
    bundle = granted(engine.store, COUNT)
    address.report_path(engine.store, bundle.hash).write_text("Traceback of former days\n")
    with ThreadPoolExecutor(10) as callers:
        threads = list(
            callers.map(lambda _number: engine.run("count", prompt="", params={"n": 1}), range(10))
        )
    for thread in threads:
        finish(engine, thread)
