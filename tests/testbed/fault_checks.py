"""Checks after a fault: no acknowledged step is lost, no effect is silently repeated, and `resume`
completes.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from uncaged_bundles.errors import DamagedError, UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.journal.recover import History, recover
from uncaged_engine.worker import client

from .bundles import Placed
from .journals import records_of
from .steering import finish, marks

RESUMES = 5


class Follower:
    """Follower of a thread on the worker's socket that keeps the number of bytes reported as
    flushed.
    """

    def __init__(self) -> None:
        self.flushed_bytes = 0

    @contextmanager
    def watching(self, store: Store, placed: Placed) -> Iterator[None]:
        watcher = threading.Thread(target=self._watch, args=(store, placed))
        watcher.start()
        try:
            yield
        finally:
            watcher.join(timeout=60)
            assert not watcher.is_alive(), "the worker neither ended the thread nor died"

    def _watch(self, store: Store, placed: Placed) -> None:
        with client.following(store, placed.bundle.hash, placed.thread) as events:
            for event in events or ():
                self.flushed_bytes = max(self.flushed_bytes, int(event.get("flushed", 0)))


def drive(store: Store, placed: Placed, follower: Follower | None = None) -> None:
    """Ask the live worker to drive the thread, and wait until the worker leaves it or dies."""
    with suppress(UncagedError):  # not accepted: then nothing was acknowledged
        client.request(store, placed.bundle.hash, drive_message(placed), start=False)
    with (follower or Follower()).watching(store, placed):
        pass


def drive_message(placed: Placed) -> dict[str, object]:
    """Return the request to drive a thread."""
    return {"op": "drive", "threadId": placed.thread, "environment": {}, "directory": "/"}


def check_the_disk(placed: Placed, before: bytes, follower: Follower, seen: list[int]) -> None:
    """Check right after the fault that everything reported or seen outside is in the journal.

    Args:
        before: the journal at the moment of the fault.
        seen: the seqs of the effects that were seen outside.
    """
    left = placed.path.read_bytes()
    assert follower.flushed_bytes <= len(left), (
        f"a follower received {follower.flushed_bytes} bytes, {len(left)} are left"
    )
    assert left[: follower.flushed_bytes] == before[: follower.flushed_bytes]
    history = read(placed, left)
    for seq in seen:
        pending = history.pending
        assert len(history.steps) >= seq or (pending is not None and pending.seq == seq), (
            f"effect {seq} was performed without a trace"
        )


def check_the_recovery(engine: Engine, placed: Placed, expected: object) -> None:
    """Check after the repair of the disk: `resume` completes, whole lines are unchanged, and no
    effect was silently repeated.
    """
    left = placed.path.read_bytes()
    whole = left[: read(placed, left).good_bytes]
    _resume(engine, placed.thread)
    assert finish(engine, placed.thread) == expected
    data = placed.path.read_bytes()
    assert data.startswith(whole)
    attempts = Counter(record["seq"] for record in records_of(data) if "because" in record)
    for seq, times in Counter(marks(engine, placed.thread)).items():
        assert times <= 1 + attempts[seq], (
            f"effect {seq} was performed {times} times, with {attempts[seq]} attempt lines"
        )
    verdict = engine.verify(placed.thread)
    assert verdict.ok, verdict.message


def read(placed: Placed, data: bytes) -> History:
    """Return the history; an unreadable or corrupt journal fails the test."""
    try:
        history = recover(data, placed.bundle.hash, placed.thread)
    except DamagedError as exc:
        raise AssertionError(f"the journal is lost: {exc}") from exc
    assert not history.corrupt, history.damage
    return history


def _resume(engine: Engine, thread: ThreadId) -> None:
    for _ in range(RESUMES):
        status = engine.thread(thread).summary.status
        if status == "completed":
            return
        assert status in ("interrupted", "unknown"), f"after the fault the thread is {status}"
        engine.resume(thread, redo=status == "unknown")
        list(engine.follow(thread))
    raise AssertionError(f"not completed after {RESUMES} resumes: {engine.thread(thread).summary}")


def cut_power(path: Path, durable_bytes: int) -> None:
    """Cut a file to what a power cut leaves in the worst case: nothing that was not flushed."""
    with path.open("r+b") as file:
        file.truncate(durable_bytes)
