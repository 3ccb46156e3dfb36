"""Protocol of a dispatcher: hands the threads of a shared store to workers, and those of a
worker that died to others.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass

from ..door.effects import AgentPermits
from ..journal import chain, lines
from ..stores.protocol import StoreBackend, ThreadEntry
from ..threads.steering import SteeringEvent
from .admission import StoreLoad, Turn, TurnKind, WorkerOffer
from .queues import QueueSettings

_INTENT_KIND = re.compile(rb'\{"seq":\d+,"intent":\{"(?:kind":")?([a-z][a-z_]*)"')
SPILT, OUTPUT = "effect", "output"
"""Kinds of a step whose intent is in a blob, and of one that the bundle made itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadExchange:
    """A finished step: its number, the kind of its effect, and the digest of its line in the
    journal. The same lines have the same exchanges.
    """

    seq: int
    kind: str
    digest: str


class ExchangeReader:
    """Reader of the exchanges among a journal's lines, which it gets in order."""

    def __init__(self) -> None:
        self._kind: str | None = None

    def read(self, line: bytes) -> ThreadExchange | None:
        """Return the exchange that *line* ends, or None."""
        shape, seq = lines.shape_of(line)
        if shape == "intent":
            found = _INTENT_KIND.match(line)
            self._kind = SPILT if found is None else found[1].decode()
        if shape != "step" or lines.is_sub_step(line):
            return None
        kind, self._kind = self._kind or OUTPUT, None
        return ThreadExchange(seq=seq, kind=kind, digest=(chain.stated(line) or b"").hex())


class ThreadHandedOver(Exception):
    """A thread was left between two steps, for another worker."""


Recorder = Callable[[ThreadExchange], None]
"""Records a finished step with the dispatcher. Called for each step of a thread in order, from the
first on, each time that the thread is driven.
"""
DriveThread = Callable[[BundleHash, ThreadId, int, Recorder], str]
"""Drives a thread and returns the word with which it was left. The number is that of the line from
which on finished steps are recorded; those before it were, when the thread was submitted before.

Raises:
    StorageError: the thread may belong to another worker by now. The caller's process must end
        without a result.
    ThreadHandedOver: as after `LeaveThreads`. The thread still is to be driven.
"""
LeaveThreads = Callable[[], bool]
"""Leaves each driven thread before its next step, and drives no further one; returns whether all
are left, or wait in an effect that another worker can begin again.
"""
Report = Mapping[str, object]
"""What an effect in flight reports: JSON data with the ``seq`` of its step."""
SteerThread = Callable[[ThreadId, str], bool]
"""Carries out an event (`SteeringEvent`) on a thread; returns False if it is not driven here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivenThread:
    """A thread that a worker drives. worker: its name; empty if the thread waits for one, also
    after a death. kind: of its turn. other_version: that of its workers, if it is another one than
    this engine's.
    """

    entry: ThreadEntry
    worker: str
    kind: TurnKind
    other_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreWorker:
    """A living worker. threads: how many it drives. engine: its version. since_ms: when it came, by
    the clock of the store. drains: it takes no more threads.
    """

    name: str
    offer: WorkerOffer
    threads: int
    engine: str
    since_ms: int
    drains: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedThreads:
    """Threads that were submitted since a time, those first that were submitted first.

    until_ms: the time from which the next look goes on, by the store's clock. complete: there were
    no more of them.
    """

    until_ms: int
    entries: tuple[ThreadEntry, ...] = ()
    complete: bool = True


class ThreadQueue(Protocol):
    """Threads that workers drive or will drive, and requests to those workers."""

    def pending(self, threads: Collection[ThreadId]) -> dict[ThreadId, str]:
        """Return those of *threads* that a living worker drives, with its name, and those that wait
        for one, with an empty name.
        """

    def driven(self, *, limit: int) -> list[DrivenThread]:
        """Return all pending threads, those submitted last first, at most *limit*."""

    def waiting_kind(self, thread: ThreadId) -> TurnKind | None:
        """Return the kind of a thread's turn that waits for a worker; None if there is none."""

    def waiting(self) -> dict[TurnKind, int]:
        """Return how many turns of each kind wait for a worker."""

    def load(self, settings: QueueSettings) -> StoreLoad:
        """Return what runs, and what began within the periods of the rates in *settings*."""

    def workers(self) -> list[StoreWorker]:
        """Return the living workers of this version, those that came first in front."""

    def drain(self, names: Collection[str] | None) -> list[str]:
        """Have workers take no more threads, leave those that they drive to others, and end.

        Args:
            names: None for all workers, of other versions, too.
        Returns:
            The names of those that drain now. Others of *names* are not living.
        """

    def submitted(self, since_ms: int | None) -> SubmittedThreads:
        """Return the threads that were submitted since the last look, started or taken up again,
        also those that have stopped by now. A thread may be in the results of several looks.

        Args:
            since_ms: `until_ms` of the last look; None: only return the present time.
        """

    def owner(self, thread: ThreadId) -> str:
        """Return the worker that drives a thread and is the owner of its lines at present; empty if
        none is.
        """

    def request(self, thread: ThreadId, event: SteeringEvent) -> None:
        """Ask the worker that drives a thread to pause or kill it; durable when this returns. A
        kill replaces a pause.
        """

    def is_requested(self, thread: ThreadId) -> bool:
        """Tell whether a request waits for the thread's worker."""

    def withdraw(self, thread: ThreadId) -> None:
        """Delete the request for a thread, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedThread:
    """A thread that has ended. flow: the name under which it was started. ended_ms: the time that
    its journal states. lines, size_bytes: as `ThreadHead`.
    """

    entry: ThreadEntry
    flow: str
    ended_ms: int
    lines: int
    size_bytes: int


class ThreadRetention(Protocol):
    """Search for old threads, and their removal."""

    def ended(
        self,
        *,
        before_ms: int,
        endings: Collection[str],
        flow: str | None,
        after: EndedThread | None,
        limit: int,
    ) -> list[EndedThread]:
        """Return up to *limit* threads that ended before a time, those that ended first first, by
        an index.

        Args:
            flow: only of this flow. after: the last one of the page before.
        """

    def endings(self, threads: Collection[ThreadId]) -> dict[ThreadId, str]:
        """Return the ending of those of some threads that the store has (`stores.endings`)."""

    def remove(self, threads: Mapping[ThreadId, int]) -> list[ThreadId]:
        """Remove threads, in one transaction; return those that were removed.

        Args:
            threads: with the number of lines that the caller has seen. One that has others by now,
                an owner, or a pin, stays.
        """

    def sweep(self, *, progress: Callable[[int], None]) -> int:
        """Remove the blobs that no line of a thread names, unless they were put within the last
        day, and give the space of empty ranges back; return the bytes of these blobs.

        Args:
            progress: called with the number of threads whose lines were looked at.
        """


class Dispatcher(Protocol):
    """Dispatcher of one store. The journals decide what was done; a dispatcher decides only who
    drives a thread.
    """

    def submit(self, bundle: BundleHash, thread: ThreadId, turn: Turn, *, from_line: int) -> None:
        """Have a worker drive a thread, once it is in the store; durable when this returns.
        Idempotent.

        Args:
            from_line: the number of its lines at present; 0 for one that is not written yet.
        """

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
        """Drive threads that *offer* takes, by the rules of `admission`, until *stop* is set or the
        worker is to drain; then leave them to other workers. The process must end then.

        Args:
            stop: is set when the worker begins to drain.
            started: called once this worker can take threads.
            warn: called with a sentence, without a subject, about damage for which the worker takes
                no threads, while it goes on with those that it drives.
            silent_s: a worker without a sign of life for so long is dead, and this one ends once
                the store has not answered for so long.
            listen: ``HOST:PORT`` at which the dispatcher's engine reaches this worker; None for one
                of its own choice on loopback. Refused by an engine that needs none.
            until_idle: return as well once no thread that it takes is pending.
        Raises:
            StorageError: the store was lost. Threads of this process may be driven by others: it
                must end.
        """

    def agents(self) -> AgentPermits:
        """Return the permits of agents in all workers, for the one of this process."""

    def forget(self, *, before_ms: int, progress: Callable[[int], None]) -> None:
        """Remove what is kept of threads that were submitted before a time, and that no worker
        drives or will drive. They can be resumed all the same. In small transactions.

        Args:
            progress: called with the number of records that were removed.
        """

    def close(self) -> None:
        """Release the connections. Idempotent."""


class ThreadProgress(Protocol):
    """Reports of effects in flight, for those who follow a thread just then. They are not kept, and
    may be lost.
    """

    def send(self, reports: Mapping[ThreadId, Sequence[Report]]) -> None:
        """Send what effects of some threads reported, the last one last. Of many or long ones the
        newest are sent.
        """

    def follow(self, thread: ThreadId) -> AbstractContextManager[Callable[[], list[Report]]]:
        """Yield a function that returns what was sent of a thread since its last call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherChoice:
    """What runs the threads of a store. name: ``dbos`` or ``restate``. admin, ingress: the URLs of
    Restate.
    """

    name: str
    admin: str = ""
    ingress: str = ""


@runtime_checkable
class SharedStore(StoreBackend, Protocol):
    """A store whose threads are driven by workers on several machines."""

    @property
    def progress(self) -> ThreadProgress: ...

    @property
    def queue(self) -> ThreadQueue: ...

    @property
    def retention(self) -> ThreadRetention: ...

    def dispatcher(self) -> Dispatcher:
        """Return the store's dispatcher, which the caller closes.

        Raises:
            EnvironmentLacks: a library is not installed.
        """

    def runs_with(self) -> DispatcherChoice | None:
        """Return what runs the store's threads; None before the first thread or worker, if nothing
        was chosen.
        """

    def run_with_restate(self, admin: str, ingress: str | None) -> None:
        """Have Restate run the store's threads, in the place of DBOS.

        Args:
            admin, ingress: the URLs of its server; None for the usual port of the same host.
        Raises:
            UsageError: no such URLs. RefusedError: DBOS runs them already.
        """
