"""A worker whose turns Restate runs: what it sends to the server, and what it removes there."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Collection
from contextlib import suppress

from uncaged_bundles.errors import StorageError
from uncaged_engine.services.shared import Recorder
from uncaged_engine.services.stores import StoreLacks

from ..problems import RunnerLacks
from ..session import DatabaseSession
from ..turns import DriveTurn, TakenTurn
from ..workers import queue_of
from .restate_choice import chosen_address
from .restate_rows import RestateRows
from .restate_server import RestateServer
from .restate_service import DEFAULT_LISTEN, TurnService, body_of

UNHEARD_S = 10.0
"""After so long without a call, a turn's invocation is looked for: a person may have ended it."""
LACK_S = 1.0


class RestateWorker:
    """The worker of one session."""

    def __init__(
        self, session: DatabaseSession, rows: RestateRows, number: int, drive: DriveTurn
    ) -> None:
        self._rows = rows
        self._number = number
        self._drive = drive
        self._store_name = rows.store_name()
        self._server = RestateServer(chosen_address(session))
        self._service = TurnService(self._service_of(number), self._drive_taken)
        self._keys: dict[str, str] = {}
        """Idempotency keys of the invocations of turns that were sent, by the turns' keys."""
        self._is_all_sent = True
        self._looked_s = time.monotonic()

    def start(self, listen: str | None) -> None:
        """Let Restate call this worker."""
        self._server.require_version()
        uri = self._service.serve(listen or DEFAULT_LISTEN)
        self._rows.note_deployment(self._number, self._server.register(uri))
        self.forget(self._rows.former(self._number))

    def attend(self, *, took: bool) -> None:
        """Send what was taken (`TurnRunner.attend`)."""
        is_due = time.monotonic() - self._looked_s > UNHEARD_S
        if took or is_due:  # also what was taken in a look that ended with an error
            self._is_all_sent = False
        if not self._is_all_sent:
            for turn in self._rows.of_worker(queue_of(self._number)):
                if turn.key not in self._keys and self._service.expect(turn):
                    self._send(turn, turn.key)
            self._is_all_sent = True
        if is_due:
            self._looked_s = time.monotonic()
            self._send_again()

    def forget(self, numbers: Collection[int]) -> None:
        """Remove what workers left there. What cannot be reached is left to the next worker that
        starts.
        """
        with suppress(RunnerLacks):
            for number, deployment in self._rows.deployments(numbers).items():
                for invocation in self._server.invocations(self._service_of(number)):
                    self._server.kill(invocation.id)
                if deployment is not None:
                    self._server.remove(deployment)
                self._rows.forget_deployment(number)

    def close(self) -> None:
        self._service.close()
        self._server.close()

    def _send_again(self) -> None:
        """Send turns whose invocations are gone: a person ended them, or the server lost its data.
        What drives the turn goes on, and the new invocation records it from the first step on.
        """
        unheard = self._service.unheard(UNHEARD_S)
        if not unheard:
            return
        there = {one.key for one in self._server.invocations(self._service_of(self._number))}
        for turn in unheard:
            if self._keys.get(turn.key) not in there:
                self._send(turn, f"{turn.key}/{secrets.token_hex(4)}")

    def _send(self, turn: TakenTurn, key: str) -> None:
        self._server.send(self._service_of(self._number), key, body_of(turn))
        self._keys[turn.key] = key

    def _drive_taken(self, turn: TakenTurn, record: Recorder) -> str:
        status = "ERROR"
        try:
            word = self._drive(turn.bundle, turn.thread, turn.from_line, record)
            status = "SUCCESS"
        finally:
            self._end(turn, status)
        return word

    def _end(self, turn: TakenTurn, status: str) -> None:
        """Note the end of a turn. After a death before this, another worker finds the thread
        left.
        """
        while True:
            try:
                self._rows.end(turn, status)
                break
            except StoreLacks:
                time.sleep(LACK_S)
            except StorageError:
                threading.Event().wait()  # rule 3 of `dispatching`: the process ends first
        self._keys.pop(turn.key, None)

    def _service_of(self, number: int) -> str:
        return f"{self._store_name}-{number}"
