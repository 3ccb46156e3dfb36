"""Driving of a shared store's threads in this process, each from its journal's last line to the
moment when it must be left.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from contextvars import copy_context
from functools import partial
from itertools import count
from pathlib import Path

from uncaged_bundles.errors import (
    DamagedError,
    NotFoundError,
    StorageError,
    UncagedError,
)
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass

from ..door.effects import AgentPermits, RunChild
from ..journal.file import JournalFile
from ..journal.infolog import InfoLog
from ..journal.journal import JournalBusy
from ..notify.sender import Sender
from ..settings.loading import load
from ..state.observe import summarise
from ..steps.driver import Driver
from ..steps.observing import Observers
from ..steps.request import DriveRequest, WorkerContext
from ..stores.protocol import LineOwner, StoreLacks
from ..stores.reading import lines_of
from ..threads.preparing import forget
from ..threads.steering import end_leftovers
from .cell_pool import CellPool
from .dispatch import ExchangeReader, Recorder, ThreadExchange, ThreadHandedOver
from .journal import SharedJournal, left_word
from .replica import Replica

START_GRACE_S = 30.0
"""How long a submitted thread may be missing: its starter submits it before it writes it."""
OWNER_GRACE_S = 60.0
"""How long the session of a former owner may take to end."""
RETRY_S = 0.2
LACK_S = 1.0
"""How long a worker waits before it asks a store again that lacked something."""
OBSERVERS_S = 5.0
MISSING = "missing"
"""The word for a thread that its starter never wrote."""
ELSEWHERE = "elsewhere"
"""The word for a thread that another worker drives, which took it from the queue before."""


Publish = Callable[[ThreadId, Mapping[str, object]], None]


class StoreLost(StorageError):
    """The store took no more lines from this owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlace:
    """Where a worker's effects happen. directory: of scripts. environment: of child processes.
    clock_ms: of the journals.
    """

    directory: Path
    environment: dict[str, str]
    clock_ms: Callable[[], int]


class ThreadDriving:
    """Services of this process's drivers. Make it in a thread of execution that outlives them."""

    def __init__(
        self,
        replica: Replica,
        place: WorkerPlace,
        report: Callable[[ThreadId, str], None],
        run_child: RunChild,
        driver_of: Callable[[ThreadId], str],
        *,
        agents: AgentPermits | None = None,
        publish: Publish | None = None,
    ) -> None:
        """
        Args:
            report: called with a sentence for a thread that cannot be driven here. run_child,
                agents: see `ThreadContext`. driver_of: see `ThreadQueue.owner`. publish: see
                `WorkerContext`; None for no followers but those of the journal.
        """
        self._agents = agents
        self._run_child = run_child
        self._driver_of = driver_of
        self._report = report
        self._replica = replica
        self._place = place
        self._publish = publish or _publish_nothing
        self._cells = CellPool(replica)
        self._sender = Sender()
        self._observers = Observers()
        self._slots = count(1)
        self._drivers: dict[ThreadId, Driver] = {}
        self._leaving = False
        self._driven = 0
        self._counting = threading.Lock()
        self._waiting: set[ThreadId] = set()

    def steer(self, thread: ThreadId, event: str) -> bool:
        """Pause or kill a thread (`SteerThread`).

        Raises:
            StorageError: the store did not take the pause.
        """
        driver = self._drivers.get(thread)
        if driver is None:
            return False
        try:
            if event == "kill":
                driver.kill()
            else:
                driver.pause()
        except NotFoundError:  # it was left just now
            return False
        return True

    def drive(self, bundle: BundleHash, thread: ThreadId, from_line: int, record: Recorder) -> str:
        """Drive a thread (`DriveThread`).

        Raises:
            StorageError: the store, or the ownership of the thread, was lost. ThreadHandedOver:
                after `leave`.
        """
        with self._counting:
            self._driven += 1
        try:
            word = self._drive_owned(bundle, thread, from_line, record)
        except StorageError:
            raise
        except UncagedError as exc:
            self._report(thread, f"cannot be driven here: {exc}")
            word = "interrupted"
        finally:
            with self._counting:
                self._driven -= 1
        if self._leaving and word == "interrupted":
            raise ThreadHandedOver(thread)
        return word

    def leave(self) -> bool:
        """Leave all threads (`LeaveThreads`)."""
        self._leaving = True
        with self._counting:
            drivers = list(self._drivers.values())
            others = self._driven - len(drivers)
        for driver in drivers:
            driver.hand_over()
        return not others and all(driver.only_waits for driver in drivers)

    def _drive_owned(
        self, bundle: BundleHash, thread: ThreadId, from_line: int, record: Recorder
    ) -> str:
        owner = self._owned(bundle, thread)
        if isinstance(owner, str):
            return owner
        # notifications go last: who gets one can take the thread up at once
        with ExitStack() as afterwards, owner:
            replica = self._replica
            threads = replica.backend.threads
            lines = list(lines_of(threads, bundle, thread))
            replica.put_journal(bundle, thread, lines, threads.notes(bundle, thread))
            try:
                with closing(_RecordedExchanges(record)) as exchanges:
                    exchanges.skip(lines[:from_line])
                    exchanges.add(lines[from_line:])  # those of former owners
                    return self._drive_copy(owner, bundle, thread, exchanges, afterwards)
            finally:
                self._clean_up(thread, lines[0])
                self._waiting.discard(thread)
                replica.drop_journal(bundle, thread)

    def _clean_up(self, thread: ThreadId, start: bytes) -> None:
        """Remove what effects have made for a thread: the next worker makes it from the store."""
        files = self._replica.files
        if not files.private(thread).exists():
            return
        try:
            end_leftovers(files, thread)
            forget(files, thread, json.loads(start), self._place.environment)
        except (UncagedError, OSError) as exc:
            self._report(thread, f"left files in {files.work}: {exc}")

    def _report_lack(self, journal: SharedJournal, bundle: BundleHash, thread: ThreadId) -> None:
        """Report what this machine lacked, if a thread is paused for that."""
        pending = journal.reread().pending
        if pending is not None and pending.voided == "environment":
            files = self._replica.files
            found = summarise(files, bundle, thread, files.data_path(bundle, thread))
            self._report(thread, f"is paused: {found.message}")

    def close(self) -> None:
        """End the sandbox processes, and send what is left to send."""
        self._cells.close()
        self._sender.close()
        self._observers.close(OBSERVERS_S)

    def _owned(self, bundle: BundleHash, thread: ThreadId) -> LineOwner | str:
        """Become the owner, or return the word for a thread that is not to be driven here."""
        begin_s = time.monotonic()
        while not self._leaving:
            waited_s = time.monotonic() - begin_s
            try:
                return self._replica.backend.threads.open(bundle, thread)
            except NotFoundError:
                # its starter died, or is about to write it
                if waited_s > START_GRACE_S:
                    return MISSING
            except JournalBusy:
                # it read the request for which the thread was submitted once more
                if self._driver_of(thread):
                    return ELSEWHERE
                if waited_s > OWNER_GRACE_S:
                    raise
            except StoreLacks as exc:
                self._wait(thread, exc)
            time.sleep(RETRY_S)
        return "interrupted"

    def _wait(self, thread: ThreadId, lack: StoreLacks) -> None:
        """Wait before the store is asked again; report the first time."""
        if thread not in self._waiting:
            self._waiting.add(thread)
            self._report(thread, f"waits: {lack}")
        time.sleep(LACK_S)

    def _drive_copy(
        self,
        owner: LineOwner,
        bundle: BundleHash,
        thread: ThreadId,
        exchanges: _RecordedExchanges,
        afterwards: ExitStack,
    ) -> str:
        replica, files = self._replica, self._replica.files
        replica.registry.freshen()  # for effects that look at the flows
        file = JournalFile.open(files, bundle, thread)
        wait = partial(self._wait, thread)
        journal = SharedJournal(
            file, owner, send_blobs=replica.send_blobs, sent=exchanges.add, wait=wait
        )
        try:
            left = left_word(journal, files, bundle)
            if left is not None:
                exchanges.settle()
                return left
            try:
                word = self._run(journal, bundle, thread, afterwards)
                if word == "paused":
                    self._report_lack(journal, bundle, thread)
            except StorageError:
                _raise_damage(journal)
                raise
            except UncagedError as exc:
                if journal.lost is None:
                    info = InfoLog(files.info_path(bundle, thread), self._place.clock_ms)
                    info.note("5XN7QD2B", f"cannot be driven: {exc}")
                    self._report(thread, f"cannot be driven here: {exc}")
                word = "interrupted"
            if journal.lost is not None:
                _raise_damage(journal)
                raise StoreLost(f"thread {thread}: {journal.lost}") from journal.lost
            exchanges.settle()
            self._send_info(bundle, thread)
            return word
        finally:
            file.close()

    def _send_info(self, bundle: BundleHash, thread: ThreadId) -> None:
        info = self._replica.info(bundle, thread)
        while True:
            try:
                self._replica.backend.threads.replace_info(bundle, thread, info)
                return
            except StoreLacks as exc:
                self._wait(thread, exc)

    def _run(
        self, journal: SharedJournal, bundle: BundleHash, thread: ThreadId, afterwards: ExitStack
    ) -> str:
        with self._cells.of(bundle) as cells:
            config = load(self._replica.files)
            driver = Driver(
                thread=thread,
                slot=next(self._slots),
                journal=journal,
                request=DriveRequest(
                    environment=config.carried(self._place.environment),
                    directory=self._place.directory,
                ),
                config=config,
                worker=WorkerContext(
                    store=self._replica.files,
                    cells=cells,
                    clock_ms=self._place.clock_ms,
                    publish=self._publish,
                    run_child=self._run_child,
                    agents=self._agents,
                    sender=self._sender,
                    observers=self._observers,
                ),
            )
            driver.accept()
            afterwards.callback(driver.notify)
            with self._counting:
                self._drivers[thread] = driver
                if self._leaving:
                    driver.hand_over()
            try:
                return driver.run()
            finally:
                with self._counting:
                    del self._drivers[thread]


class _RecordedExchanges:
    """Finished steps on their way to the dispatcher: in order, in a thread of execution of their
    own, so that a step is recorded while the next one is performed. The journal is at most one
    step ahead of the record when a further one is added.
    """

    def __init__(self, record: Recorder) -> None:
        self._record = record
        self._reader = ExchangeReader()
        self._waiting: list[ThreadExchange] = []
        self._driving = threading.get_ident()
        self._context = copy_context()  # in which the dispatcher knows the thread
        self._recorder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="record")
        self._recording: Future[None] | None = None

    def skip(self, lines: Sequence[bytes]) -> None:
        """Pass over lines whose steps were recorded when the thread was submitted before."""
        for line in lines:
            self._reader.read(line)

    def add(self, lines: Sequence[bytes]) -> None:
        """Add lines that the store has. Called by other threads of execution, it leaves the record
        to the next call of the one that drives. Raises: as the recorder, for earlier lines.
        """
        self._waiting += [one for line in lines if (one := self._reader.read(line)) is not None]
        if threading.get_ident() == self._driving and self._waiting:
            self._wait()
            found, self._waiting = self._waiting, []
            self._recording = self._recorder.submit(self._context.run, self._record_all, found)

    def settle(self) -> None:
        """Record what was added, and return once that is done. Raises: as the recorder."""
        self.add(())
        self._wait()

    def close(self) -> None:
        """Record no more. It does not wait: without the database, a record is tried for good."""
        self._recorder.shutdown(wait=False, cancel_futures=True)

    def _wait(self) -> None:
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.result()

    def _record_all(self, found: Sequence[ThreadExchange]) -> None:
        for one in found:
            self._record(one)


def worker_place(clock_ms: Callable[[], int]) -> WorkerPlace:
    """Return this process's directory and variables."""
    return WorkerPlace(directory=Path.cwd(), environment=dict(os.environ), clock_ms=clock_ms)


def _raise_damage(journal: SharedJournal) -> None:
    """Raise the damage that an append met. It leaves its thread alone, and no other one of the
    worker, whose session lives.
    """
    if isinstance(journal.lost, DamagedError):
        raise journal.lost


def _publish_nothing(_thread: ThreadId, _event: Mapping[str, object]) -> None:
    """Publish nothing."""
