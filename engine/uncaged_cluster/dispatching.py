"""Dispatcher of a store in PostgreSQL: the loop of a worker around the runner of its turns.

Rule 1: a worker lives as long as the database session in which it owns threads. Its name has that
session's number, so no heartbeat is needed to find the dead.
Rule 2: what a runner has of a thread repeats what the journal says. It decides who drives a thread,
and never what was done.
Rule 3: a turn whose worker lost its session gets no result from it: the process ends first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress

from uncaged_bundles.errors import DamagedError, StorageError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId, parse_bundle_hash, parse_thread_id
from uncaged_engine.services.shared import (
    AgentPermits,
    DriveThread,
    LeaveThreads,
    Recorder,
    SteerThread,
    ThreadHandedOver,
    Turn,
    WorkerOffer,
)
from uncaged_engine.services.stores import StoreLacks

from .admitting import TurnRows
from .liveness import dead_workers
from .news import TurnNews, TurnWaiting
from .notifications import Notifications
from .pending import PendingThreads
from .problems import RunnerLacks
from .rights import require_rights
from .session import DatabaseSession
from .turns import NewTurn, TurnRunner
from .workers import PROTOCOL, WorkerAgents, WorkerRows

POLL_S = 0.2
REAP_S = 1.0
"""How often a worker looks for dead ones, and for requests."""
HEARTBEAT_S = 1.0
"""How often a worker sends a statement in its session."""
RETIRE_S = 120.0
"""How long a worker tries to give back its turns."""


class ClusterDispatcher:
    """Dispatcher of the store in one schema."""

    def __init__(
        self,
        session: DatabaseSession,
        watching: DatabaseSession,
        notifications: Notifications,
        runner: TurnRunner,
    ) -> None:
        """
        Args:
            watching: another session, beside the one that owns threads. It is closed with this.
        """
        self._session = session
        self._watching = watching
        self._pending = PendingThreads(session)
        self._workers = WorkerRows(session)
        self._news = TurnNews(session, notifications)
        self._runner = runner
        self._turns = TurnRows(watching, runner.table)
        self._obeying: set[tuple[ThreadId, str]] = set()

    def submit(self, bundle: BundleHash, thread: ThreadId, turn: Turn, *, from_line: int) -> None:
        self._runner.add(NewTurn(bundle=bundle, thread=thread, turn=turn, from_line=from_line))
        self._news.tell()  # after a death before this, a worker finds the turn at its next look

    def work(
        self,
        drive: DriveThread,
        steer: SteerThread,
        leave: LeaveThreads,
        *,
        offer: WorkerOffer,
        until_idle: bool,
        stop: threading.Event,
        silent_s: float,
        started: Callable[[], None],
        warn: Callable[[str], None],
        listen: str | None,
    ) -> None:
        number = self._session.number()
        self._session.give_up_after(silent_s)  # others take over then
        lost = threading.Event()
        waiting = self._news.follow()
        failures: tuple[type[Exception], ...] = (StorageError, *self._runner.failures)

        def drive_turn(bundle: str, thread: str, from_line: int, record: Recorder) -> str:
            try:
                return drive(parse_bundle_hash(bundle), parse_thread_id(thread), from_line, record)
            except failures:
                lost.set()
                threading.Event().wait()  # rule 3
                raise
            except ThreadHandedOver:
                threading.Event().wait()  # it has no result; the process ends
                raise
            finally:
                waiting.note_room()

        self._runner.start(number, drive_turn, listen)
        require_rights(self._session, {self._runner.schema: self._runner.rights})
        self._workers.announce(offer, PROTOCOL)
        started()
        attended: Future[None] = Future()

        def attend() -> None:
            try:
                self._attend(
                    (number, offer),
                    (steer, leave),
                    silent_s=silent_s,
                    until_idle=until_idle,
                    stop=stop,
                    waiting=waiting,
                    damage=DamageReport(warn),
                )
            except BaseException as exc:
                attended.set_exception(exc)
            else:
                attended.set_result(None)

        # beside the heartbeat, which no other connection and no lock may delay
        threading.Thread(target=attend, name="attend", daemon=True).start()
        while not attended.done():
            self._require_session(number, lost)
            with suppress(TimeoutError):
                attended.result(HEARTBEAT_S)
        attended.result()

    def agents(self) -> AgentPermits:
        rows = TurnRows(self._session, self._runner.table)  # beside the session that moves turns
        return WorkerAgents(self._workers, rows.settings)

    def forget(self, *, before_ms: int, progress: Callable[[int], None]) -> None:
        self._runner.forget(before_ms, progress)

    def close(self) -> None:
        self._runner.close()
        self._watching.close()

    def _attend(
        self,
        worker: tuple[int, WorkerOffer],
        drivers: tuple[SteerThread, LeaveThreads],
        *,
        silent_s: float,
        until_idle: bool,
        stop: threading.Event,
        waiting: TurnWaiting,
        damage: DamageReport,
    ) -> None:
        """Take turns, carry out requests, and give back what dead workers have taken, until this
        worker has left its threads.
        """
        (number, offer), (steer, leave) = worker, drivers
        reap_s = time.monotonic()
        while not stop.is_set():
            looked_s, took = time.monotonic(), None
            # until the server has space, a frozen client was ended, or a document was corrected
            with suppress(StoreLacks), damage.reported():
                if looked_s >= reap_s:
                    reap_s = looked_s + REAP_S
                    self._obey(steer)
                    self._reap(silent_s)
                    if self._workers.is_to_drain(number):
                        stop.set()
                        break
                    if until_idle and not self._any_pending(offer):
                        break
                took = self._take(number, offer) if self._turns.waiting_kinds() else 0
                self._runner.attend(took=bool(took))
            waiting.wait(looked_s, again=took is None)
        # not after an error: others drive the threads then
        while not leave():
            with suppress(StoreLacks):
                self._obey(steer)
            time.sleep(POLL_S)
        self._retire(number)

    def _require_session(self, number: int, lost: threading.Event) -> None:
        self._session.query("SELECT 1")  # a session without a statement counts as frozen
        if lost.is_set() or self._session.number() != number:
            raise StorageError(
                f"{self._session.address}: this worker's session ended, and others drive its threads"
            )

    def _obey(self, steer: SteerThread) -> None:
        """Begin to carry out the requests for threads of this worker. A kill waits for the kills of
        child threads, which are requests, too.
        """
        for request in self._pending.requests():
            if request not in self._obeying:
                self._obeying.add(request)
                carry_out = threading.Thread(
                    target=self._carry_out, args=(steer, *request), name="request", daemon=True
                )
                carry_out.start()

    def _carry_out(self, steer: SteerThread, thread: ThreadId, event: str) -> None:
        try:
            # without the store the process ends, and another worker finds the request
            with suppress(UncagedError):
                if steer(thread, event):
                    self._pending.obeyed(thread, event)
        finally:
            self._obeying.discard((thread, event))

    def _take(self, number: int, offer: WorkerOffer) -> int | None:
        """Take turns that wait; return how many, or None if another worker just takes some."""
        with self._turns.alone() as alone:
            if not alone:
                return None
            return self._turns.take(number, offer, self._runner.move, self._session.query)

    def _reap(self, silent_s: float) -> None:
        """Give back what dead workers have taken, and end the sessions of silent ones. One worker
        at a time does this.
        """
        with self._turns.alone() as alone:
            if not alone:
                return
            workers = self._workers.names()
            found = dead_workers(self._watching, workers, silent_s=silent_s)
            dead = [workers[name] for name in found]
            if dead:
                self._turns.give_back(dead, self._runner.move)
                self._forget(dead)

    def _retire(self, number: int) -> None:
        """Give back what this worker has taken and not finished."""
        give_up_s = time.monotonic() + RETIRE_S
        while time.monotonic() < give_up_s:
            with self._turns.alone() as alone:
                if alone:
                    self._turns.give_back([number], self._runner.move)
                    self._forget([number])
                    return
            time.sleep(POLL_S)

    def _forget(self, numbers: list[int]) -> None:
        """Delete what is kept for workers that have no turns left."""
        self._runner.forget_workers(numbers)
        self._workers.remove(numbers)
        self._turns.forget_begun()

    def _any_pending(self, offer: WorkerOffer) -> bool:
        """Tell whether a turn waits or runs that a worker with this offer takes."""
        settings = self._turns.settings()
        return any(offer.takes(kind, settings) for kind in self._turns.pending_kinds())


class DamageReport:
    """Warnings about a part of the store that cannot be read, or about the runner's engine, each
    once while it is as it is.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._last = ""

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Report what hinders the block, and end the block there."""
        try:
            yield
            self._last = ""
        except (DamagedError, RunnerLacks) as exc:
            if str(exc) != self._last:
                self._last = str(exc)
                self._warn(f"takes no threads until that is corrected: {exc}")
