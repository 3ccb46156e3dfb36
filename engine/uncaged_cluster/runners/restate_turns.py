"""Runner of turns with Restate: an invocation for each turn that was taken, of a service of the
worker that took it.

The turns are rows of the store, since Restate has no queue with limits over several workers. It
sends each call of a service to the newest deployment that has it, so each worker has a service of
its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from uncaged_bundles.errors import EnvironmentLacks

from ..admitting import QUEUE
from ..liveness import worker_name
from ..problems import ConnectionLost
from ..session import DatabaseSession
from ..turns import RESTATE, DriveTurn, NewTurn, schema_of, table_of
from .restate_rows import RestateRows

if TYPE_CHECKING:
    from .restate_worker import RestateWorker

FORGOTTEN_AT_ONCE = 1000


class RestateRunner:
    """Runner of the turns of the store in one schema (`TurnRunner`)."""

    rights: Mapping[str, str] = {
        "deployments": "SELECT INSERT DELETE",
        "server": "SELECT",
        "turns": "SELECT INSERT UPDATE",
    }
    failures: tuple[type[Exception], ...] = ()

    def __init__(self, session: DatabaseSession, watching: DatabaseSession) -> None:
        """
        Args:
            watching: another session, beside the one that owns threads.
        """
        self._session = session
        self._rows = RestateRows(session)
        self._rows_beside = RestateRows(watching)
        self.schema = schema_of(session.address.schema, RESTATE)
        self.table = table_of(session.address.schema, RESTATE)
        self._worker: RestateWorker | None = None

    def add(self, turn: NewTurn) -> None:
        try:
            self._rows_beside.add(turn)
        except ConnectionLost:
            # the server ended the connection some time ago, which its first use notices
            self._rows_beside.add(turn)

    def start(self, number: int, drive: DriveTurn, listen: str | None) -> None:
        try:
            from .restate_worker import RestateWorker  # 0.3 s
        except ModuleNotFoundError as exc:
            raise EnvironmentLacks(
                f"running threads with Restate needs the package {exc.name}: pip install 'uncaged-workflow[cluster,restate]'"
            ) from exc
        self._worker = RestateWorker(self._session, self._rows, number, drive)
        self._worker.start(listen)

    def move(self, turns: list[str], queue: str) -> None:
        if queue == QUEUE:
            self._rows.give_back(turns)
        else:
            self._rows.take(turns, queue, worker_name(self._session))

    def attend(self, *, took: bool) -> None:
        if self._worker is not None:
            self._worker.attend(took=took)

    def forget_workers(self, numbers: Collection[int]) -> None:
        if self._worker is not None:
            self._worker.forget(numbers)

    def forget(self, before_ms: int, progress: Callable[[int], None]) -> None:
        removed = 0
        while found := self._rows_beside.forget(before_ms, FORGOTTEN_AT_ONCE):
            removed += found
            progress(removed)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
