"""Dispatcher of a store in PostgreSQL: a DBOS workflow for each thread, in a schema beside the
store's.

Rule 1: a worker lives as long as the database session in which it owns threads. Its DBOS executor
id names that session, so no heartbeat is needed to find the dead.
Rule 2: a workflow's steps repeat what the journal says. DBOS decides who drives a thread, and never
what was done.
Rule 3: a workflow whose worker lost its session gets no result from it: the process ends first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer
from psycopg import sql
from sqlalchemy.exc import DBAPIError
from uncaged_bundles.errors import DamagedError, StorageError, UncagedError, UsageError
from uncaged_bundles.ids import BundleHash, ThreadId, parse_bundle_hash, parse_thread_id
from uncaged_engine.services.shared import (
    AgentPermits,
    DriveThread,
    LeaveThreads,
    SteerThread,
    ThreadExchange,
    ThreadHandedOver,
    Turn,
    WorkerOffer,
)
from uncaged_engine.services.stores import StoreLacks

from .address import ClusterAddress
from .admitting import HIGHEST, QUEUE, TurnRows
from .liveness import dead_workers, end_silent_holders, worker_name
from .migrations import check_may_make, has_schema
from .news import SELDOM_S, PollingPace, TurnNews, TurnWaiting
from .notifications import Notifications
from .pending import PendingThreads, dispatcher_schema, workflow_id
from .problems import ConnectionLost, explained
from .rights import require_rights
from .session import APPLICATION, Connection, DatabaseSession, connect
from .workers import PROTOCOL, WorkerAgents, WorkerRows, queue_of

MOST_SCHEMA_CHARACTERS = 58
"""PostgreSQL's names have 63, and DBOS's schema has five more than the store's."""
WORKFLOW = "drive"
FINISHED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
FORGOTTEN_AT_ONCE = 100
POLL_S = 0.2
REAP_S = 1.0
"""How often a worker looks for dead ones, and for requests."""
HEARTBEAT_S = 1.0
"""How often a worker sends a statement in its session."""
SETUP_S = 120.0
SETUP_SILENT_S = 60.0
"""A process that sets up DBOS for longer is frozen."""
SETUP_LOCK = "dispatcher"
_SETUP_NOTE = f"tables of DBOS {version('dbos')} for uncaged-workflow"
_JSON = DBOSPortableJSONSerializer()
_LOG = logging.getLogger("dbos")


class DbosDispatcher:
    """Dispatcher of the store in one schema."""

    def __init__(self, session: DatabaseSession, notifications: Notifications) -> None:
        if len(session.address.schema) > MOST_SCHEMA_CHARACTERS:
            raise UsageError(
                f"{session.address}: a schema whose threads are run has a name of {MOST_SCHEMA_CHARACTERS} characters at most"
            )
        self._session = session
        self._watching = DatabaseSession(session.address)
        self._pending = PendingThreads(session)
        self._workers = WorkerRows(session)
        self._news = TurnNews(session, notifications)
        self._turns = TurnRows(self._watching, dispatcher_schema(session))
        self._obeying: set[tuple[ThreadId, str]] = set()
        self._schema = dispatcher_schema(session)
        self._engine = dbos_engine(session.address)
        self._client: DBOSClient | None = None

    def submit(self, bundle: BundleHash, thread: ThreadId, turn: Turn, *, from_line: int) -> None:
        try:
            self._enqueue(bundle, thread, from_line, turn)
        except ConnectionLost:
            # the server ended the connection some time ago, which its first use notices; a
            # workflow that was submitted all the same is not submitted twice
            self._enqueue(bundle, thread, from_line, turn)

    def _enqueue(self, bundle: BundleHash, thread: ThreadId, from_line: int, turn: Turn) -> None:
        with self._explained():
            self._clients().enqueue(
                {
                    "workflow_name": WORKFLOW,
                    "queue_name": QUEUE,
                    "queue_partition_key": str(turn.kind),
                    "priority": HIGHEST - turn.priority,
                    "workflow_id": workflow_id(thread, from_line),
                    "app_version": PROTOCOL,
                },
                bundle,
                thread,
                from_line,
            )
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
    ) -> None:
        number = self._session.number()
        self._session.give_up_after(silent_s)  # others take over then
        lost = threading.Event()
        waiting = self._news.follow()

        def drive_workflow(bundle: str, thread: str, from_line: int = 0) -> str:
            try:
                return drive(parse_bundle_hash(bundle), parse_thread_id(thread), from_line, _record)
            except (StorageError, DBAPIError):  # also `StoreLost`
                lost.set()
                threading.Event().wait()  # rule 3
                raise
            except ThreadHandedOver:
                threading.Event().wait()  # it has no result; the process ends
                raise
            finally:
                waiting.note_room()

        with self._setting_up():
            self._launch(worker_name(self._session), queue_of(number), drive_workflow)
            # without limits: what is in it was admitted
            queue = DBOS.register_queue(
                queue_of(number), polling_interval_sec=SELDOM_S, on_conflict="always_update"
            )
        require_rights(self._session, self._schema)
        pace = PollingPace(queue.set_polling_interval_sec)
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
                    pace=pace,
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
        rows = TurnRows(self._session, self._schema)  # beside the session that moves turns
        return WorkerAgents(self._workers, rows.settings)

    def forget(self, *, before_ms: int, progress: Callable[[int], None]) -> None:
        before = datetime.fromtimestamp(before_ms / 1000, UTC).isoformat()
        removed = 0
        with self._explained():
            while True:
                found = self._clients().list_workflows(
                    status=FINISHED,
                    name=WORKFLOW,
                    end_time=before,
                    limit=FORGOTTEN_AT_ONCE,
                    load_input=False,
                    load_output=False,
                )
                if not found:
                    return
                self._clients().delete_workflows([one.workflow_id for one in found])
                removed += len(found)
                progress(removed)

    def close(self) -> None:
        if self._client is not None:
            self._client.destroy()
        self._watching.close()
        self._engine.dispose()

    def _attend(
        self,
        worker: tuple[int, WorkerOffer],
        drivers: tuple[SteerThread, LeaveThreads],
        *,
        silent_s: float,
        until_idle: bool,
        stop: threading.Event,
        waiting: TurnWaiting,
        pace: PollingPace,
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
                    with self._explained():
                        self._reap(silent_s)
                    if self._workers.is_to_drain(number):
                        stop.set()
                        break
                    if until_idle and not self._any_pending(offer):
                        break
                took = self._take(number, offer) if self._turns.waiting_kinds() else 0
                with self._explained():
                    pace.note(took=bool(took))
            waiting.wait(looked_s, again=took is None)
        # not after an error: others drive the threads then
        while not leave():
            with suppress(StoreLacks):
                self._obey(steer)
            time.sleep(POLL_S)
        self._retire(number)

    def _launch(self, executor: str, queue: str, drive: Callable[[str, str], str] | None) -> None:
        """Start DBOS in this process, and bring its tables to its version. queue: of workflows that
        are driven here.
        """
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_engine": self._engine,
            "dbos_system_schema": self._schema,
            "application_version": PROTOCOL,
            "executor_id": executor,
            "serializer": _JSON,
            "enable_otlp": False,
            "log_level": "CRITICAL",  # errors of the launch are raised, too
        }
        # in place of the library's own handler, which keeps the stream of the first launch
        if not _LOG.handlers and logging.lastResort is not None:
            _LOG.addHandler(logging.lastResort)
            _LOG.propagate = False
        DBOS(config=config)
        DBOS.listen_queues([queue])
        if drive is not None:
            DBOS.workflow(name=WORKFLOW)(drive)
        DBOS.launch()
        _LOG.setLevel(logging.ERROR)

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
        with self._explained(), self._turns.alone() as alone:
            if not alone:
                return None
            return self._turns.take(number, offer, self._move, self._session.query)

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
                self._turns.give_back(dead, self._move)
                self._forget(dead)

    def _retire(self, number: int) -> None:
        """Give back what this worker has taken and not finished."""
        give_up_s = time.monotonic() + SETUP_S
        while time.monotonic() < give_up_s:
            with self._explained(), self._turns.alone() as alone:
                if alone:
                    self._turns.give_back([number], self._move)
                    self._forget([number])
                    return
            time.sleep(POLL_S)

    def _forget(self, numbers: list[int]) -> None:
        """Delete the rows and the queues of workers that have no turns left."""
        for number in numbers:
            self._clients().delete_queue(queue_of(number))
        self._workers.remove(numbers)
        self._turns.forget_begun()

    def _move(self, workflows: list[str], queue: str) -> None:
        self._clients().resume_workflows(workflows, queue_name=queue)

    def _any_pending(self, offer: WorkerOffer) -> bool:
        """Tell whether a turn waits or runs that a worker with this offer takes."""
        settings = self._turns.settings()
        return any(offer.takes(kind, settings) for kind in self._turns.pending_kinds())

    def _clients(self) -> DBOSClient:
        if self._client is None:
            if not self._is_set_up():
                with self._setting_up():
                    self._launch("setup", QUEUE, None)
                    DBOS.destroy(destroy_registry=True)
            self._client = DBOSClient(
                system_database_engine=self._engine,
                dbos_system_schema=self._schema,
                serializer=_JSON,
                application_name=APPLICATION,
                retry_connection_errors=False,
            )
        return self._client

    def _is_set_up(self) -> bool:
        """Tell whether the tables have been brought to the version of this DBOS."""
        [(noted,)] = self._session.query(
            "SELECT obj_description(to_regnamespace(%s), 'pg_namespace')", [self._schema]
        )
        return bool(noted == _SETUP_NOTE)

    @contextmanager
    def _setting_up(self) -> Iterator[None]:
        """Hold a lock while DBOS changes its tables, and note the version in the schema's comment:
        a client that comes meanwhile waits. The session of a frozen holder is ended.

        Neither holder nor waiter has a transaction open, for which DBOS's `CREATE INDEX
        CONCURRENTLY` would wait in turn.
        """
        key = [self._watching.lock_key(SETUP_LOCK)]
        give_up_s = time.monotonic() + SETUP_S
        if not has_schema(self._watching, self._schema):
            check_may_make(self._watching, self._schema)
        with self._explained():
            while not self._watching.query("SELECT pg_try_advisory_lock(%s)", key)[0][0]:
                if time.monotonic() > give_up_s:
                    raise StorageError(
                        f"{self._session.address}: another process sets up DBOS for too long; look at pg_stat_activity"
                    )
                end_silent_holders(self._watching, [SETUP_LOCK], silent_s=SETUP_SILENT_S)
                time.sleep(POLL_S)
            try:
                yield
                # after a death before this note, the next process looks at the tables again
                if not self._is_set_up():
                    comment = sql.SQL("COMMENT ON SCHEMA {} IS {}")
                    self._watching.query(comment.format(sql.Identifier(self._schema), _SETUP_NOTE))
            finally:
                self._watching.query("SELECT pg_advisory_unlock(%s)", key)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise the errors of DBOS's connections as those of the store's."""
        with explained(self._session.address):
            try:
                yield
            except DBAPIError as exc:
                raise exc.orig or exc from exc


class DamageReport:
    """Warnings about a part of the store that cannot be read, each once while it is as it is."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._last = ""

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Report damage that the block meets, and end the block there."""
        try:
            yield
            self._last = ""
        except DamagedError as exc:
            if str(exc) != self._last:
                self._last = str(exc)
                self._warn(f"takes no threads until that is corrected: {exc}")


def dbos_engine(address: ClusterAddress) -> sqlalchemy.Engine:
    """Return the pool of DBOS's connections. A connection that cannot be made is an error of
    psycopg there: then DBOS tries again, and an error of ours would be one of the workflow.
    """

    def connected() -> Connection:
        try:
            made = connect(address)
        except UncagedError as exc:
            raise exc.__cause__ or exc from None
        # DBOS does not try again; the server ends a frozen client sooner
        made.execute("SET lock_timeout = '10min'")
        made.autocommit = False
        return made

    # without a ping before each use, which took a third of a step: a lost session ends a worker
    return sqlalchemy.create_engine("postgresql+psycopg://", creator=connected)


def _record(exchange: ThreadExchange) -> None:
    """Record a finished step of the running workflow; one that DBOS knows is compared.

    Raises:
        DamagedError: DBOS knows another one. No worker can drive the thread.
    """
    made = {"seq": exchange.seq, "kind": exchange.kind, "digest": exchange.digest}
    known = DBOS.run_step({"name": exchange.kind, "max_attempts": 1}, lambda: made)
    if known != made:
        raise DamagedError(
            f"DBOS recorded {known} where the journal has {made}: was the store's schema restored without that of DBOS?"
            " Copy the store to a directory and resume the thread there"
        )
