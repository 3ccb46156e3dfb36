"""Access of one process to a conversation: as its holder if the lock is free, else as a client of
the holder.

A request keeps its id for as long as it takes: when the holder dies or leaves, the client takes the
free lock, or submits the same request to the next holder, which has it in the log already.
"""

from __future__ import annotations

import os
import queue
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from uncaged_bundles.errors import RefusedError, StorageError, UncagedError, os_problem
from uncaged_bundles.ids import new_thread_id
from uncaged_engine.api import Engine
from uncaged_engine.services.local_sockets import pack, raise_error, receive_line, unpack

from .execution import ENTROPY_BYTES, Interpret
from .feedback import Feedback
from .held import HolderLeft
from .holder import Holder
from .live import Caller, RequestEvent
from .log import ConversationLog, socket_of
from .request_queue import MAX_QUEUED, CancelResult
from .requests import ConversationRequest
from .serving import ConversationServer
from .session_answers import Respond, SessionAnswer, SessionAnswers

CONNECT_TIMEOUT_S = 30.0
ANSWER_TIMEOUT_S = 60.0
PAUSE_S = 0.02


def new_request_id(now_ms: int) -> str:
    """Return the id of a new request."""
    return new_thread_id(now_ms, os.urandom(ENTROPY_BYTES))


class ConversationSession:
    """One process's requests in one conversation."""

    def __init__(
        self,
        engine: Engine,
        id: str,
        interpret: Callable[[], Interpret],
        clock_ms: Callable[[], int],
    ) -> None:
        """Args: interpret: makes the reader of sentences; called by the holder alone."""
        self.id = id
        self._engine = engine
        self._interpret = interpret
        self._clock_ms = clock_ms

    def run(
        self, request: ConversationRequest, caller: Caller, respond: Respond
    ) -> Generator[RequestEvent, None, None]:
        """Submit a request and yield its events, and those of the requests that its result makes;
        the last one is a result. Closed before a thread has started, the request is cancelled;
        closed after that, the thread goes on, and the next holder records its result.

        Raises:
            RefusedError: it was not accepted, or the holder does not answer.
        """
        seen: set[int] = set()
        answers = SessionAnswers(respond)
        failing_since: float | None = None
        while True:
            has_events = False
            try:
                for event in self._events(request, caller, answers):
                    has_events = True
                    # another holder repeats what is in the log
                    if event.get("seq") in seen:
                        continue
                    seen.update({event["seq"]} if "seq" in event else ())
                    yield event
            except HolderLeft:
                now = time.monotonic()
                failing_since = now if has_events or failing_since is None else failing_since
                if now - failing_since > CONNECT_TIMEOUT_S:
                    raise RefusedError(
                        f"another process uses conversation {self.id} and does not answer; try again, or use another --conversation"
                    ) from None
                time.sleep(PAUSE_S)
            else:
                return

    def cancel(self, text: str) -> CancelResult:
        """Cancel a request by its id or the client's id. Without a holder, this process waits for
        its end, and starts no other.

        Raises:
            RefusedError: the holder left meanwhile.
        """
        log = ConversationLog.open(self._engine.store, self.id, self._clock_ms)
        if log is None:
            reply = self._ask_holder({"op": "cancel", "id": text})
            if not reply:
                raise self._changing_holder()
            found: CancelResult = reply["cancelled"]
            return found
        holder = Holder(self._engine, log, self._interpret(), self._clock_ms)
        try:
            return holder.cancel_alone(text)
        finally:
            holder.leave()

    def snapshot(self) -> Mapping[str, Any] | None:
        """Return the holder's queue; None without a holder."""
        return self._ask_holder({"op": "snapshot"}).get("snapshot")

    def change_settings(self, changed: Mapping[str, object]) -> None:
        """Record settings of the conversation that changed."""
        message = {"op": "settings", "settings": changed}
        self._record(lambda log: log.settings(changed), message)

    def give_feedback(self, id: str, feedback: Feedback) -> None:
        """Record the person's feedback on a request."""
        message = {"op": "feedback", "id": id, "feedback": feedback.document()}
        self._record(lambda log: log.feedback(id, feedback), message)

    def _record(
        self, write: Callable[[ConversationLog], None], message: Mapping[str, object]
    ) -> None:
        """Write to the log if its lock is free, else send the holder a message that does.

        Raises:
            RefusedError: another process has the lock and does not answer.
        """
        until = time.monotonic() + CONNECT_TIMEOUT_S
        while (
            log := ConversationLog.open(self._engine.store, self.id, self._clock_ms)
        ) is None and not self._ask_holder(message):
            # it writes a record itself, or its socket comes or goes
            if time.monotonic() > until:
                raise self._changing_holder()
            time.sleep(PAUSE_S)
        if log is None:
            return
        try:
            write(log)
        finally:
            log.close()

    def _changing_holder(self) -> RefusedError:
        return RefusedError(f"conversation {self.id} changes its holder; try again")

    def _ask_holder(self, message: Mapping[str, object]) -> Mapping[str, Any]:
        """Return the holder's reply; empty if there is none."""
        connection = self._connect()
        if connection is None:
            return {}
        with connection, suppress(HolderLeft):
            return _exchange(connection, message)
        return {}

    def _events(
        self, request: ConversationRequest, caller: Caller, answers: SessionAnswers
    ) -> Iterator[RequestEvent]:
        log = ConversationLog.open(self._engine.store, self.id, self._clock_ms)
        if log is None:
            yield from self._remote_events(request, caller, answers)
            return
        holder = Holder(self._engine, log, self._interpret(), self._clock_ms)
        try:
            server = ConversationServer(self._engine.store, holder)
        except BaseException:
            log.close()
            raise
        try:
            with holder:
                try:
                    yield from _local_events(holder, request, caller, answers)
                finally:
                    server.unlink()
        finally:
            server.close()

    def _remote_events(
        self, request: ConversationRequest, caller: Caller, answers: SessionAnswers
    ) -> Iterator[RequestEvent]:
        connection = self._connect()
        if connection is None:
            raise HolderLeft
        with connection:
            buffer = bytearray()
            message = {
                "op": "submit",
                "request": request.document(),
                "environment": caller.environment,
                "attended": caller.attended,
            }
            _send(connection, message)
            progress = RequestProgress(request.id)
            try:
                while progress.waiting:
                    event = _receive(connection, buffer)
                    if "tag" in event and "event" not in event:
                        again = answers.replied(event["tag"], lambda: check_reply(event))  # noqa: B023 - called at once
                        _send_answer(connection, again)
                        continue
                    if "event" not in event:
                        check_reply(event)
                        connection.settimeout(None)  # hours may pass between two events
                        continue
                    if event["event"] == "left":
                        raise HolderLeft
                    progress.add(event)
                    yield event
                    _send_answer(connection, answers.to(event))
                    for id in progress.added():
                        _send(connection, {"op": "attach", "id": id})
            except HolderLeft:
                raise
            except BaseException:
                with suppress(HolderLeft):
                    for id in progress.unstarted():
                        _send(connection, {"op": "cancel", "id": id})
                raise

    def _connect(self) -> socket.socket | None:
        path = socket_of(self._engine.store, self.id)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(ANSWER_TIMEOUT_S)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
            # its holder is just coming or leaving, or has more clients than it can accept
            connection.close()
            return None
        except OSError as exc:
            connection.close()
            raise StorageError(f"cannot reach the holder at {os_problem(exc, path)}") from exc
        return connection


def _local_events(
    holder: Holder, request: ConversationRequest, caller: Caller, answers: SessionAnswers
) -> Iterator[RequestEvent]:
    events: queue.SimpleQueue[RequestEvent] = queue.SimpleQueue()
    # the request's record is flushed with its thread's: no other process hears of it before
    while refusal := holder.submit(
        request, listener=events.put, caller=caller, durable=False, last=True
    ):
        if refusal.reason != "queue_full":
            check_reply(refusal.document())
        # the requests of dead clients, which this holder brings to their end first
        holder.wait_for_room()
    progress = RequestProgress(request.id)
    try:
        while progress.waiting:
            event = events.get()
            if event["event"] == "left":
                if holder.failure is not None:
                    raise holder.failure
                raise HolderLeft
            progress.add(event)
            yield event
            answer = answers.to(event)
            while answer is not None:
                give = partial(holder.answer, answer.id, answer.question, answer.value)
                answer = answers.replied(answer.question, give)
            for id in progress.added():
                holder.attach(id, events.put)
    except HolderLeft:
        raise
    except BaseException:
        with suppress(HolderLeft, UncagedError):
            for id in progress.unstarted():
                holder.cancel(id)
        raise


def _send_answer(connection: socket.socket, answer: SessionAnswer | None) -> None:
    if answer is not None:
        fields = {"id": answer.id, "question": answer.question, "value": answer.value}
        _send(connection, {"op": "answer", **fields, "tag": answer.question})


class RequestProgress:
    """Requests of a session: the submitted one, and those that results made. waiting: those
    without a result.
    """

    def __init__(self, id: str) -> None:
        self.waiting = {id}
        self._started: set[str] = set()
        self._added: list[str] = []

    def add(self, event: RequestEvent) -> None:
        """Take an event into account."""
        match event["event"]:
            case "thread":
                self._started.add(event["id"])
            case "result":
                self.waiting.discard(event["id"])
                self.waiting.update(event["next"])
                self._added = list(event["next"])
            case _:
                pass

    def added(self) -> list[str]:
        """Return the requests that the last event added, once."""
        added, self._added = self._added, []
        return added

    def unstarted(self) -> list[str]:
        """Return the requests whose threads have not started."""
        return sorted(self.waiting - self._started)


def _exchange(connection: socket.socket, message: Mapping[str, object]) -> dict[str, Any]:
    _send(connection, message)
    reply = _receive(connection, bytearray())
    check_reply(reply)
    return reply


def _send(connection: socket.socket, message: Mapping[str, object]) -> None:
    try:
        connection.sendall(pack(message))
    except OSError as exc:
        raise HolderLeft from exc


def _receive(connection: socket.socket, buffer: bytearray) -> dict[str, Any]:
    line = receive_line(connection, buffer)
    if line is None:
        raise HolderLeft
    try:
        return unpack(line)
    except ValueError as exc:
        raise UncagedError(f"the holder's message is not understood: {exc}") from exc


def check_reply(reply: Mapping[str, Any]) -> None:
    """Raise the error of a holder's reply, if it has one."""
    match reply:
        case {"ok": True}:
            return
        case {"ok": False, "error": "queue_full"}:
            raise RefusedError(
                f"queue_full: {reply.get('maximum', MAX_QUEUED)} requests are queued already; wait, or use another --conversation"
            )
        case {"ok": False, "error": "server_stopping"}:
            raise RefusedError("server_stopping: the conversation's server is stopping; try again")
        case {"ok": False, "error": str(reason)}:
            raise RefusedError(f"{reason}: the conversation has another request with this id")
        case _:
            raise_error(reply)
            raise UncagedError(f"a reply that is not understood: {reply!r:.200}")
