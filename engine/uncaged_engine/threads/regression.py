"""Regression check of a flow's version: a replay of past threads with it, without performing any
effect.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from uncaged_bundles.errors import BundleError, DamagedError, ReplayError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..cells.cell import Cell, CellDied, CellLimits
from ..cells.replay import Replay, ReplayDifference
from ..cells.reply import BundleReply
from ..journal import archive, lines, lock
from ..journal.blobs import BlobDirectory, Blobs
from ..journal.codec import decode
from ..journal.recover import History, recover
from ..sandbox.mechanism import Mechanism
from .verify import difference_at_the_end

AHEAD_BYTES = 4 << 20
"""As much as is read in the time that a sandbox takes to start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCheck:
    """Result of one past thread's replay with the new version.

    identical: same effects, same end. step: the first that differs (0: none, or no single step).
    recorded, yielded: both sides of the difference. message: an explanation. results: the recorded
    and the new one, of a thread that has the same steps and another result. succeeds_now: the
    thread failed, and the version ends it with success.
    """

    thread_id: ThreadId
    steps: int
    identical: bool
    step: int = 0
    recorded: str = ""
    yielded: str = ""
    message: str = ""
    results: tuple[object, object] | None = None
    succeeds_now: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PastThread:
    """Past thread with its prepared replay. problem: why it cannot be replayed; *replay* is None
    then.
    """

    thread_id: ThreadId
    data: bytes
    history: History
    replay: Replay | None
    problem: str = ""


def check(
    threads: Iterator[PastThread],
    bundle: Bundle,
    mechanism: Mechanism | None,
    *,
    deadline_s: float,
) -> list[ReplayCheck]:
    """Replay past threads with *bundle*, in one sandbox process, which is started again after a
    thread that ends it.

    While the process starts, and while the bundle works on one thread, journals of the next are
    read.
    """
    checked: list[ReplayCheck] = []
    ahead = ReadAhead(threads)
    past = ahead.take()
    if past is None:
        return checked
    cell = Cell.spawn(mechanism, limits=CellLimits())
    try:
        ahead.fill()
        cell.load(bundle)
        while past is not None:
            if not cell.alive:
                cell = Cell.start(bundle, mechanism, limits=CellLimits())
            checked.append(
                _check_one(past, cell, slot=len(checked) + 1, deadline_s=deadline_s, ahead=ahead)
            )
            past = ahead.take()
    finally:
        cell.close()
    return checked


def first_difference(
    bundle: Bundle, past: PastThread, count: int, mechanism: Mechanism | None, *, deadline_s: float
) -> str | None:
    """Replay the first *count* steps of a thread with *bundle*; return how it differs from them, or
    None if it yields the same effects.
    """
    if past.replay is None:
        return past.problem
    cell = Cell.start(bundle, mechanism, limits=CellLimits())
    try:
        past.replay.run_stepwise(cell, 1, past.data, deadline_s=deadline_s, count=count)
    except (ReplayError, BundleError) as exc:
        return str(exc)
    except CellDied as died:
        return f"the bundle gave no answer: {died.reason}: {died.detail}"
    finally:
        cell.close()
    return None


class ReadAhead:
    """Read-ahead of threads: `read` fetches one if there is none, `fill` as many as have
    `AHEAD_BYTES`.
    """

    def __init__(self, threads: Iterator[PastThread]) -> None:
        self._threads = threads
        self._next: deque[PastThread] = deque()

    def read(self) -> None:
        if not self._next:
            self._next.extend(islice(self._threads, 1))

    def fill(self) -> None:
        size = 0
        while size < AHEAD_BYTES and (past := next(self._threads, None)) is not None:
            self._next.append(past)
            size += len(past.data)

    def take(self) -> PastThread | None:
        self.read()
        return self._next.popleft() if self._next else None


def find_past(store: Store, flow: str) -> Iterator[PastThread]:
    """Yield the threads of a flow that are not running and whose journals can be read."""
    blobs = BlobDirectory(store.blobs)
    for bundle_hash, thread, path in store.find_journals():
        try:
            found = past_thread(flow, bundle_hash, thread, _read_if(flow, path), blobs)
        except (OSError, DamagedError):
            continue  # `threads` lists it as corrupt
        if found is not None:
            yield found


def past_thread(
    flow: str, bundle: BundleHash, thread: ThreadId, data: bytes | None, blobs: Blobs
) -> PastThread | None:
    """Return a thread with its prepared replay; None without lines, if they cannot be read, or if
    the thread belongs to another flow.

    Raises:
        DamagedError: its start record is damaged.
    """
    history = None if data is None else recover(data, bundle, thread)
    if data is None or history is None or history.corrupt or history.start["name"] != flow:
        return None
    try:
        replay = Replay(history, blobs.expand_record(history.start), blobs, trusted=False)
    except (UncagedError, OSError) as exc:
        return PastThread(
            thread_id=thread, data=data, history=history, replay=None, problem=str(exc)
        )
    return PastThread(thread_id=thread, data=data, history=history, replay=replay)


def _read_if(flow: str, path: str) -> bytes | None:
    """Return a journal's bytes; None if its thread is running, or belongs to another flow."""
    if path.endswith(archive.SUFFIX):
        return archive.read(Path(path))
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if lock.is_held(fd):
            return None
        if lines.flow_in(os.pread(fd, lines.HEAD_BYTES, 0)) not in (flow, None):
            return None
        return os.pread(fd, os.fstat(fd).st_size, 0)
    finally:
        os.close(fd)


def _check_one(
    past: PastThread, cell: Cell, *, slot: int, deadline_s: float, ahead: ReadAhead
) -> ReplayCheck:
    history, thread, steps = past.history, past.thread_id, len(past.history.steps)
    if past.replay is None:
        return ReplayCheck(thread_id=thread, steps=steps, identical=False, message=past.problem)
    try:
        now = past.replay.run(cell, slot, deadline_s=deadline_s, meanwhile=ahead.read)
        if now is None:
            now = past.replay.run_stepwise(
                cell, slot, past.data[: history.good_bytes], deadline_s=deadline_s
            )
        problem = difference_at_the_end(history, now)
        if now.word == "effect":  # after any other reply the generator has ended
            cell.ask("D", slot, 0, b"", deadline_s=deadline_s)
    except ReplayDifference as exc:
        yielded = exc.body.decode() if exc.word == "effect" else f"{exc.word} {exc.body.decode()}"
        recorded = exc.recorded.decode("utf-8", "replace")
        return ReplayCheck(
            thread_id=thread,
            steps=steps,
            identical=False,
            step=exc.step,
            recorded=recorded,
            yielded=yielded,
            message=str(exc),
            succeeds_now=_succeeds_now(history, exc.word, exc.body),
        )
    except ReplayError as exc:
        return ReplayCheck(thread_id=thread, steps=steps, identical=False, message=str(exc))
    except CellDied as died:
        return ReplayCheck(
            thread_id=thread,
            steps=steps,
            identical=False,
            message=f"the bundle gave no answer: {died.reason}: {died.detail}",
        )
    return ReplayCheck(
        thread_id=thread,
        steps=steps,
        identical=problem is None,
        step=steps + 1 if problem else 0,
        message=problem or "",
        results=_results(history, now) if problem else None,
        succeeds_now=problem is not None and _succeeds_now(history, now.word, now.body),
    )


def _results(history: History, now: BundleReply) -> tuple[object, object] | None:
    """Return the recorded and the new result; None if one of them has none."""
    end = history.end
    if end is None or "result" not in end or now.word != "return":
        return None
    return end["result"], decode(now.body)


def _succeeds_now(history: History, word: str, body: bytes) -> bool:
    """Tell whether a thread failed and the version's reply ends it with success."""
    end = history.end
    if end is None or word != "return":
        return False
    failed = end["end"] == "failed" or _success_of(end.get("result")) is False
    return failed and _success_of(decode(body)) is True


def _success_of(result: object) -> object:
    return result.get("success") if isinstance(result, dict) else None
