"""Socket of a held conversation: requests of other processes, and the events that they get.

Messages are one JSON object per line, over `run/conversation-ID.sock`:

    {"op":"submit","request":{…},"environment"?,"attended"?,"interrupt"?}
    {"op":"attach","id"}     {"op":"answer","id","question","value"}
    {"op":"cancel","id"}     {"op":"promote","id"}     {"op":"snapshot"}     {"op":"observe"}
    {"op":"settings","settings":{…}}     {"op":"feedback","id","feedback":{…}}

A reply has `ok` or `error`, and the request's `tag` if it had one; events have `event`. A client
that does not read is dropped once its unsent messages reach a limit; none delays another.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from uncaged_bundles.errors import UncagedError, UsageError
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.local_sockets import error_message, listen, pack, unpack

from .feedback import Feedback
from .held import HolderLeft
from .holder import Holder
from .live import Caller, RequestEvent
from .log import socket_of
from .request_queue import QueueSnapshot
from .requests import ConversationRequest

MAX_MESSAGE_BYTES = 1 << 20
MAX_UNSENT_BYTES = 4 << 20
MAX_CONNECTIONS = 64
RECEIVE_BYTES = 64 << 10
Reply = Mapping[str, object]


class ClientConnection:
    """Connection of one client. Other threads only add to what is unsent."""

    def __init__(self, connection: socket.socket, wake: Callable[[], None]) -> None:
        self.socket = connection
        self.received = bytearray()
        self.has_requests = False
        self.stop_observing: Callable[[], None] | None = None
        self._unsent = bytearray()
        self._lock = threading.Lock()
        self._wake = wake
        self._is_lost = False

    def send(self, message: Mapping[str, object]) -> None:
        """Queue a message."""
        data = pack(message)
        with self._lock:
            if len(self._unsent) + len(data) > MAX_UNSENT_BYTES:
                self._is_lost = True  # half of the messages would be worse than none
            else:
                self._unsent += data
        self._wake()

    def event(self, event: RequestEvent) -> None:
        """Queue an event of a request."""
        self.send(event)

    def snapshot(self, snapshot: QueueSnapshot) -> None:
        """Queue a snapshot of the queue."""
        self.send({"event": "snapshot", "snapshot": snapshot.document()})

    @property
    def has_unsent(self) -> bool:
        """Whether there is something to write."""
        return bool(self._unsent)

    def flush(self) -> bool:
        """Write what the socket takes; False if the connection is lost."""
        with self._lock:
            if self._is_lost:
                return False
            try:
                if self._unsent:
                    del self._unsent[: self.socket.send(self._unsent[:RECEIVE_BYTES])]
            except BlockingIOError:
                return True
            except OSError:
                return False
        return True


class ConversationServer:
    """Listener of a holder. One thread of execution serves all clients."""

    def __init__(self, store: Store, holder: Holder) -> None:
        self._path = socket_of(store, holder.state.id)
        self._holder = holder
        self._listener = listen(self._path)
        self._selector = selectors.DefaultSelector()
        self._connections: list[ClientConnection] = []
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="clients", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening, send what is queued, and close all connections. The holder has left
        before, and its lock is free: the socket's name may be another's by now.
        """
        self._is_closing = True
        self._wake()
        self._thread.join()

    def unlink(self) -> None:
        """Remove the socket's name; the caller still has the lock."""
        self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        try:
            while not self._is_closing:
                for key, events in self._selector.select():
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.fileobj == self._wake_read:
                        self._awake()
                    elif events & selectors.EVENT_READ:
                        self._read(key.data)
                for connection in tuple(self._connections):
                    self._write(connection)
        finally:
            for connection in tuple(self._connections):
                self._write(connection)
                self._drop(connection)
            self._listener.close()
            self._selector.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except OSError:  # it went away again, or there is no file left for it
            return
        accepted.setblocking(False)
        if len(self._connections) >= MAX_CONNECTIONS:
            idle = next((one for one in self._connections if not one.has_requests), None)
            if idle is None:
                with suppress(OSError):
                    accepted.send(pack(error_message(_TOO_MANY)))
                accepted.close()
                return
            self._drop(idle)
        connection = ClientConnection(accepted, self._wake)
        self._connections.append(connection)
        self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _read(self, connection: ClientConnection) -> None:
        try:
            part = connection.socket.recv(RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        if not part:
            self._drop(connection)
            return
        connection.received += part
        while (end := connection.received.find(b"\n")) >= 0:
            line = bytes(connection.received[: end + 1])
            del connection.received[: end + 1]
            self._answer(connection, line)
        if len(connection.received) > MAX_MESSAGE_BYTES:
            connection.send(
                error_message(UsageError(f"a message is longer than {MAX_MESSAGE_BYTES} bytes"))
            )
            self._write(connection)
            self._drop(connection)

    def _answer(self, connection: ClientConnection, line: bytes) -> None:
        tag: Mapping[str, object] = {}
        try:
            message = unpack(line)
            tag = {"tag": message["tag"]} if "tag" in message else {}
            reply = self._perform(connection, message)
        except HolderLeft:
            reply = {"event": "left"}
        except UncagedError as problem:
            reply = error_message(problem)
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            reply = error_message(UsageError(f"this message is not understood: {exc!r:.200}"))
        connection.send({**tag, **reply})

    def _perform(self, connection: ClientConnection, message: Mapping[str, Any]) -> Reply:
        holder = self._holder
        match message.get("op"):
            case "submit":
                return self._submit(connection, message)
            case "attach":
                connection.has_requests = True
                holder.attach(str(message["id"]), connection.event)
                return {"ok": True}
            case "answer":
                value = message["value"]
                if not isinstance(value, dict):
                    raise UsageError("the value of an answer is an object")
                holder.answer(str(message["id"]), int(message["question"]), value)
                return {"ok": True}
            case "cancel":
                return {"ok": True, "cancelled": holder.cancel(str(message["id"]))}
            case "promote":
                return {"ok": True, "promoted": holder.promote(str(message["id"]))}
            case "settings":
                changed = message["settings"]
                if not isinstance(changed, dict):
                    raise UsageError("settings are an object")
                holder.settings(changed)
                return {"ok": True}
            case "feedback":
                holder.feedback(str(message["id"]), Feedback.read(message["feedback"]))
                return {"ok": True}
            case "observe" | "snapshot" as op:
                if op == "observe" and connection.stop_observing is None:
                    connection.stop_observing = holder.observe(connection.snapshot)
                return {"ok": True, "snapshot": holder.snapshot().document()}
            case other:
                raise UsageError(f"a conversation has no operation {other!r:.80}")

    def _submit(self, connection: ClientConnection, message: Mapping[str, Any]) -> Reply:
        request = ConversationRequest.read(message["request"])
        if request.parent is not None:
            raise UsageError("a client's request has no parent; only a result makes such requests")
        environment = message.get("environment")
        if environment is not None and not _is_environment(environment):
            raise UsageError("the environment is an object of texts")
        connection.has_requests = True
        refusal = self._holder.submit(
            request,
            listener=connection.event,
            caller=Caller(environment=environment, attended=message.get("attended") is True),
            interrupt=message.get("interrupt") is True,
        )
        if refusal is not None:
            return refusal.document()
        return {"ok": True, "entry": {"id": request.id, "clientId": request.client_id}}

    def _write(self, connection: ClientConnection) -> None:
        if connection not in self._connections:
            return
        if not connection.flush():
            self._drop(connection)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.has_unsent else 0)
        self._selector.modify(connection.socket, wanted, connection)

    def _drop(self, connection: ClientConnection) -> None:
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()
        if connection.stop_observing is not None:
            connection.stop_observing()
        self._holder.detach(connection.event)

    def _awake(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wake_read, 4096):
                pass

    def _wake(self) -> None:
        with suppress(OSError):  # awake already, or closed
            os.write(self._wake_write, b"w")


_TOO_MANY = UncagedError(f"the conversation has {MAX_CONNECTIONS} clients; try again later")


def _is_environment(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(text, str) for name, text in value.items()
    )
