"""What must hold after a fault: no acknowledged step is lost, none is performed twice in silence,
and `resume` completes.
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


class Witness:
    """Somebody who follows a thread on the worker's socket and remembers how far it was told to be
    on disk.
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


def drive(store: Store, placed: Placed, witness: Witness | None = None) -> None:
    """Have the thread driven by the live worker and wait until it is left, or the worker is
    gone.
    """
    with suppress(UncagedError):  # not accepted: then nothing was acknowledged
        client.request(store, placed.bundle.hash, drive_message(placed), start=False)
    with (witness or Witness()).watching(store, placed):
        pass


def drive_message(placed: Placed) -> dict[str, object]:
    """The request that has a thread driven."""
    return {"op": "drive", "threadId": placed.thread, "environment": {}, "directory": "/"}


def judge_the_disk(placed: Placed, before: bytes, witness: Witness, seen: list[int]) -> None:
    """Right after the fault: what somebody was told of, or saw happen, is in the journal.

    Args:
        before: the journal at the moment of the fault. seen: the seqs of the effects that the world
            saw.
    """
    left = placed.path.read_bytes()
    assert witness.flushed_bytes <= len(left), (
        f"a follower was told of {witness.flushed_bytes} bytes, {len(left)} are left"
    )
    assert left[: witness.flushed_bytes] == before[: witness.flushed_bytes]
    history = read(placed, left)
    for seq in seen:
        pending = history.pending
        assert len(history.steps) >= seq or (pending is not None and pending.seq == seq), (
            f"effect {seq} was performed without a trace"
        )


def judge_the_rest(engine: Engine, placed: Placed, expected: object) -> None:
    """After the disk is mended: `resume` completes, nothing that was whole has changed, and nothing
    was repeated in silence.
    """
    left = placed.path.read_bytes()
    whole = left[: read(placed, left).good_bytes]
    _resume(engine, placed.thread)
    assert finish(engine, placed.thread) == expected
    data = placed.path.read_bytes()
    assert data.startswith(whole)
    said = Counter(record["seq"] for record in records_of(data) if "because" in record)
    for seq, times in Counter(marks(engine, placed.thread)).items():
        assert times <= 1 + said[seq], (
            f"effect {seq} was performed {times} times, and {said[seq]} lines say so"
        )
    verdict = engine.verify(placed.thread)
    assert verdict.ok, verdict.message


def read(placed: Placed, data: bytes) -> History:
    """The history; a journal that cannot be read at all, or is corrupt, is a loss."""
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
    """What the disk has after a power cut, in the worst case: nothing that was not flushed."""
    with path.open("r+b") as file:
        file.truncate(durable_bytes)
