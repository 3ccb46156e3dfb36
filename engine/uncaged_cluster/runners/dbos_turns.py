"""Runner of turns with DBOS: a workflow for each, in a schema beside the store's.

A workflow's steps repeat what the journal says. A turn that waits is in the queue ``threads``,
which no worker polls; one that was taken is in the queue of its worker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer
from psycopg import sql
from sqlalchemy.exc import DBAPIError
from uncaged_bundles.errors import (
    DamagedError,
    RefusedError,
    StorageError,
    UncagedError,
    UsageError,
)
from uncaged_engine.services.shared import ThreadExchange

from ..address import ClusterAddress
from ..admitting import HIGHEST, QUEUE
from ..liveness import end_silent_holders, worker_name
from ..migrations import check_may_make, has_schema
from ..news import SELDOM_S, PollingPace
from ..problems import ConnectionLost, explained
from ..session import APPLICATION, Connection, DatabaseSession, connect
from ..turns import DBOS as ENGINE
from ..turns import RESTATE, SETUP_LOCK, DriveTurn, NewTurn, TurnTable, schema_of, table_of
from ..workers import PROTOCOL, queue_of

MOST_SCHEMA_CHARACTERS = 58
"""PostgreSQL's names have 63, and DBOS's schema has five more than the store's."""
WORKFLOW = "drive"
FINISHED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
FORGOTTEN_AT_ONCE = 100
POLL_S = 0.2
SETUP_S = 120.0
SETUP_SILENT_S = 60.0
"""A process that sets up DBOS for longer is frozen."""
_SETUP_NOTE = f"tables of DBOS {version('dbos')} for uncaged-workflow"
_JSON = DBOSPortableJSONSerializer()
_LOG = logging.getLogger("dbos")


class DbosRunner:
    """Runner of the turns of the store in one schema (`TurnRunner`)."""

    rights: Mapping[str, str] = {
        "operation_outputs": "SELECT INSERT",
        "workflow_status": "SELECT INSERT UPDATE",
    }
    failures: tuple[type[Exception], ...] = (DBAPIError,)

    def __init__(self, session: DatabaseSession, watching: DatabaseSession) -> None:
        """
        Args:
            watching: another session, beside the one that owns threads.
        """
        if len(session.address.schema) > MOST_SCHEMA_CHARACTERS:
            raise UsageError(
                f"{session.address}: a schema whose threads are run has a name of {MOST_SCHEMA_CHARACTERS} characters at most"
            )
        self._session = session
        self._watching = watching
        self.schema = schema_of(session.address.schema, ENGINE)
        self.table = table_of(session.address.schema, ENGINE)
        self._engine = dbos_engine(session.address)
        self._client: DBOSClient | None = None
        self._pace: PollingPace | None = None

    def add(self, turn: NewTurn) -> None:
        try:
            self._enqueue(turn)
        except ConnectionLost:
            # the server ended the connection some time ago, which its first use notices; a
            # workflow that was submitted all the same is not submitted twice
            self._enqueue(turn)

    def start(self, number: int, drive: DriveTurn, listen: str | None) -> None:
        if listen is not None:
            raise UsageError("--listen is for a store whose threads Restate runs; DBOS needs none")

        def drive_workflow(bundle: str, thread: str, from_line: int = 0) -> str:
            return drive(bundle, thread, from_line, _record)

        with self._setting_up():
            self._launch(worker_name(self._session), queue_of(number), drive_workflow)
            # without limits: what is in it was admitted
            queue = DBOS.register_queue(
                queue_of(number), polling_interval_sec=SELDOM_S, on_conflict="always_update"
            )
        self._pace = PollingPace(queue.set_polling_interval_sec)

    def move(self, turns: list[str], queue: str) -> None:
        with self._explained():
            self._clients().resume_workflows(turns, queue_name=queue)

    def attend(self, *, took: bool) -> None:
        if self._pace is not None:
            with self._explained():
                self._pace.note(took=took)

    def forget_workers(self, numbers: Collection[int]) -> None:
        with self._explained():
            for number in numbers:
                self._clients().delete_queue(queue_of(number))

    def forget(self, before_ms: int, progress: Callable[[int], None]) -> None:
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
        self._engine.dispose()

    def _enqueue(self, turn: NewTurn) -> None:
        with self._explained():
            self._clients().enqueue(
                {
                    "workflow_name": WORKFLOW,
                    "queue_name": QUEUE,
                    "queue_partition_key": str(turn.turn.kind),
                    "priority": HIGHEST - turn.turn.priority,
                    "workflow_id": turn.id,
                    "app_version": PROTOCOL,
                },
                turn.bundle,
                turn.thread,
                turn.from_line,
            )

    def _launch(self, executor: str, queue: str, drive: Callable[[str, str], str] | None) -> None:
        """Start DBOS in this process, and bring its tables to its version. queue: of workflows that
        are driven here.
        """
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_engine": self._engine,
            "dbos_system_schema": self.schema,
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

    def _clients(self) -> DBOSClient:
        if self._client is None:
            if not self._is_set_up():
                with self._setting_up():
                    self._launch("setup", QUEUE, None)
                    DBOS.destroy(destroy_registry=True)
            self._client = DBOSClient(
                system_database_engine=self._engine,
                dbos_system_schema=self.schema,
                serializer=_JSON,
                application_name=APPLICATION,
                retry_connection_errors=False,
            )
        return self._client

    def _is_set_up(self) -> bool:
        """Tell whether the tables have been brought to the version of this DBOS."""
        [(noted,)] = self._session.query(
            "SELECT obj_description(to_regnamespace(%s), 'pg_namespace')", [self.schema]
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
        if not has_schema(self._watching, self.schema):
            check_may_make(self._watching, self.schema)
        with self._explained():
            while not self._watching.query("SELECT pg_try_advisory_lock(%s)", key)[0][0]:
                if time.monotonic() > give_up_s:
                    raise StorageError(
                        f"{self._session.address}: another process sets up DBOS for too long; look at pg_stat_activity"
                    )
                end_silent_holders(self._watching, [SETUP_LOCK], silent_s=SETUP_SILENT_S)
                time.sleep(POLL_S)
            try:
                if TurnTable(self._watching).engine() == RESTATE:
                    raise RefusedError(
                        f"{self._session.address}: Restate was chosen for its threads just now; try again"
                    )
                yield
                # after a death before this note, the next process looks at the tables again
                if not self._is_set_up():
                    comment = sql.SQL("COMMENT ON SCHEMA {} IS {}")
                    self._watching.query(comment.format(sql.Identifier(self.schema), _SETUP_NOTE))
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
