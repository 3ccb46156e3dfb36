"""Costs of a step, counted instead of timed: flushes, bytes, and the effects that a resume performs
again.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from testbed.bundles import COUNT, MARKED, PLANNED, Placed, place, place_script, script_of
from testbed.bundles import granted as granted_bundle
from testbed.fault_checks import drive, drive_message
from testbed.foreground import PATIENT_WORKER, worker
from testbed.steering import finish, marks
from testbed.straced import calls_of, strace
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.journal.codec import encode
from uncaged_engine.worker import client

pytestmark = pytest.mark.slow

MOST_BYTES = 300
STEPS = 200
FOLLOWERS = 20
THREADS = 16


def flushes(engine: Engine, placed: Placed, log: Path) -> tuple[int, int]:
    """How often the journal, and how often anything else, was brought to disk while the thread
    ran.
    """
    with worker(
        engine.store,
        placed.bundle.hash,
        before=strace(log, calls=["fdatasync", "fsync", "sync_file_range", "msync"]),
        python=PATIENT_WORKER,
        stays=True,
    ):
        drive(engine.store, placed)
    calls = calls_of(log)
    own = sum(call.name == "fdatasync" and f"<{placed.path}>" in call.arguments for call in calls)
    return own, len(calls) - own


@pytest.mark.needs("strace")
def test_one_flush_per_step(engine: Engine, tmp_path: Path) -> None:
    """After creation exactly one fdatasync for each step, one for the end, and nothing else is
    synchronised at all.
    """
    placed = place(engine.store, COUNT, params={"n": STEPS})
    assert flushes(engine, placed, tmp_path / "log") == (STEPS + 1, 0)
    finish(engine, placed.thread)


@pytest.mark.needs("strace")
def test_sixteen_threads_of_a_worker_flush_once_a_step(engine: Engine, tmp_path: Path) -> None:
    """Threads that wait for their turn with the bundle's process flush no outcome by itself: one
    fdatasync for each step, and one for each end.
    """
    placed = [
        place(engine.store, COUNT, number=number, params={"n": STEPS}) for number in range(THREADS)
    ]
    bundle, log = placed[0].bundle.hash, tmp_path / "log"
    traced = strace(log, calls=["fdatasync"], light=True)
    with worker(engine.store, bundle, before=traced, python=PATIENT_WORKER, stays=True):
        for started in placed:
            client.request(engine.store, bundle, drive_message(started), start=False)
        for started in placed:
            finish(engine, started.thread)
    assert len(calls_of(log)) == THREADS * (STEPS + 1)


@pytest.mark.needs("strace")
def test_one_flush_per_output_and_per_failure(engine: Engine, tmp_path: Path) -> None:
    """An output is flushed before it is sent back; a failure at once, and then the next intent with
    it or after it.
    """
    outputs = place(
        engine.store,
        PLANNED,
        params={"plan": [{"output": {"role": "r", "content": "", "meta": {}}}] * 5},
    )
    assert flushes(engine, outputs, tmp_path / "outputs") == (6, 0)
    failures = place(
        engine.store, PLANNED, number=1, params={"plan": [{"null": {"fail": "no"}}] * 5}
    )
    own, others = flushes(engine, failures, tmp_path / "failures")
    assert (own, others) == (2 * 5 + 1, 0)


@pytest.mark.needs("strace")
def test_twenty_followers_cost_one_write_each_and_batch(engine: Engine, tmp_path: Path) -> None:
    """Twenty followers get far fewer writes than steps times followers, all from one thread that is
    not the flow's.
    """
    placed = place(engine.store, COUNT, params={"n": STEPS})
    told: list[int] = []
    calls = ["write", "pwrite64", "sendto", "sendmsg"]
    with worker(
        engine.store,
        placed.bundle.hash,
        python=("-m", "testbed.patched", "slow-batches", "uncaged_engine.worker"),
        before=strace(tmp_path / "log", calls=calls),
        stays=True,
    ) as process:
        client.request(engine.store, placed.bundle.hash, drive_message(placed), start=False)
        followers = [
            threading.Thread(target=lambda: told.append(len(list(engine.follow(placed.thread)))))
            for _ in range(FOLLOWERS)
        ]
        for follower in followers:
            follower.start()
        for follower in followers:
            follower.join()
        assert process.poll() is None
    assert told == [2 * STEPS + 3] * FOLLOWERS  # start, intents, outcomes, end and status
    found = calls_of(tmp_path / "log")
    drivers = {
        call.pid for call in found if call.name == "write" and f"<{placed.path}>" in call.arguments
    }
    sends = [
        call
        for call in found
        if call.name in ("sendto", "sendmsg") and call.arguments.startswith(tuple("0123456789"))
    ]
    by_drivers = [call for call in sends if call.pid in drivers]
    assert by_drivers == []
    assert FOLLOWERS < len(sends) < FOLLOWERS * STEPS / 4


def overheads(data: bytes) -> dict[int, int]:
    """Bytes of a step's lines beyond its encoded effect and outcome, by seq."""
    beyond: dict[int, int] = {}
    for line in data.splitlines(keepends=True):
        record = json.loads(line)
        for part in ("intent", "outcome"):
            if part in record:
                beyond[record["seq"]] = (
                    beyond.get(record["seq"], 0) + len(line) - len(encode(record[part]).encode())
                )
    return beyond


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Store]:
    """A store that needs no disk, where only bytes are counted."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as directory:
        yield Store.open(Path(directory))


def test_bytes_per_step_are_few_and_do_not_grow(in_memory: Store) -> None:
    """At most 300 beyond the effect and the outcome; the same at step 5,000 as at step 10, but for
    the digits of the number itself.
    """
    placed = place(in_memory, COUNT, params={"n": 5000})
    with worker(in_memory, placed.bundle.hash):
        drive(in_memory, placed)
    found = overheads(placed.path.read_bytes())
    assert len(found) == 5000
    assert max(found.values()) <= MOST_BYTES
    digits = 2 * (len("5000") - len("10"))
    assert found[5000] - digits == found[10]
    assert {size - 2 * len(str(seq)) for seq, size in found.items()} == {found[10] - 4}


def test_resuming_five_thousand_steps_performs_none_of_them_again(engine: Engine) -> None:
    """Only what comes after is performed; the journal's first lines stay as they are."""
    bundle = granted_bundle(engine.store, MARKED)
    script = script_of(bundle, params={"n": 5003})
    for seq in range(1, 5001):
        script.done(seq, {"null": {"value": seq, "mark": True, "rule": "repeat"}})
    placed = place_script(engine.store, bundle, script)
    engine.resume(placed.thread)
    assert finish(engine, placed.thread)["message"] == "5003 answers"
    assert marks(engine, placed.thread) == [5001, 5002, 5003]
    assert placed.path.read_bytes().startswith(script.data)


@pytest.mark.needs("strace")
def test_the_count_sees_one_flush_too_many(engine: Engine, tmp_path: Path) -> None:
    """Positive control: a worker that flushes each line by itself is counted as such."""
    placed = place(engine.store, COUNT, params={"n": 5})
    log = tmp_path / "log"
    python = ("-m", "testbed.patched", "flush-each-line", "uncaged_engine.worker")
    with worker(
        engine.store, placed.bundle.hash, python=python, before=strace(log, calls=["fdatasync"])
    ):
        drive(engine.store, placed)
    assert len(calls_of(log)) == 2 * 5 + 1
