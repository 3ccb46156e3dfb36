"""Python client of the conversations that `uncaged-workflow serve` serves.

    with DispatcherClient(address, token) as client:
        request = client.submit("list the pdf files in downloads")
        print(request.result(timeout_s=60)["message"])

A client whose connection is lost connects again, and asks for the records that came after the last
one that it saw; a request that was being submitted is submitted again, and is the same one.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import new_thread_id
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from .jsonrpc import RemoteCall, call_text, read_answers

PATH = "/dispatcher"
MAX_MESSAGE_BYTES = 16 << 20
CALL_S = 60.0
RECONNECT_S = 30.0
RETRY_S = 0.2
Notice = Callable[[str, Mapping[str, Any]], None]


class RemoteError(UncagedError):
    """The server refused a call. code: that of JSON-RPC. kind: the class of the server's error."""

    def __init__(self, message: str, *, code: int, kind: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.code, self.kind, self.exit_code = code, kind, exit_code


class ServerUnreachable(UncagedError):
    """The connection to the server was lost, or there is none."""


class SubmittedRequest:
    """A request that the server accepted."""

    def __init__(self, id: str, conversation: str) -> None:
        self.id, self.conversation = id, conversation
        self._result: Future[Mapping[str, Any]] = Future()

    def result(self, timeout_s: float | None = None) -> Mapping[str, Any]:
        """Wait until the request ends and return its result.

        Raises:
            TimeoutError: it has not ended. ServerUnreachable: the client was closed, or the server
                did not come back.
        """
        return self._result.result(timeout_s)

    def settle(self, result: Mapping[str, Any] | UncagedError) -> None:
        """End the wait; the first call counts."""
        if self._result.done():
            return
        if isinstance(result, UncagedError):
            self._result.set_exception(result)
        else:
            self._result.set_result(result)


class DispatcherClient:
    """One connection. Its methods may be called by any thread; notices come in a thread of its
    own.
    """

    def __init__(
        self,
        address: str,
        token: str,
        *,
        notice: Notice | None = None,
        reconnect_s: float = RECONNECT_S,
    ) -> None:
        """Connect.

        Args:
            address: as `serve` prints it. token: the content of the file that it names.
            notice: called with the method and the parameters of each notification.
            reconnect_s: the time in which a lost connection must come back.
        Raises:
            ServerUnreachable: there is no server, or it refuses the token.
        """
        parts = urlsplit(address)
        self._address = f"ws://{parts.hostname}:{parts.port}{parts.path.rstrip('/') or PATH}"
        self._token, self._notice, self._reconnect_s = token, notice, reconnect_s
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._pending: dict[int, Callable[[Mapping[str, Any]], None]] = {}
        self._requests: dict[str, SubmittedRequest] = {}
        self._after: dict[str, int] = {}
        """The last record that was seen of each followed conversation."""
        self._is_closed = False
        self._open = ExitStack()
        """Closes the present connection."""
        self._connection = self._connect()
        self._thread = threading.Thread(target=self._run, name="dispatcher client", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. Submitted requests go on."""
        self._is_closed = True
        self._connection.close()
        self._thread.join()

    def call(self, method: str, **params: object) -> Any:
        """Call a method and return its result; parameters that are None are left out.

        Raises:
            RemoteError: the server refused it. ServerUnreachable: the connection was lost.
        """
        future: Future[Mapping[str, Any]] = Future()
        self._send(method, {k: v for k, v in params.items() if v is not None}, future.set_result)
        try:
            answer = future.result(CALL_S)
        except TimeoutError as exc:
            raise ServerUnreachable(f"{method}: no answer within {CALL_S:g} s") from exc
        if "error" in answer:
            error = answer["error"]
            data = error.get("data") or {}
            if error["code"] == _LOST:
                raise ServerUnreachable(error["message"])
            raise RemoteError(
                error["message"],
                code=error["code"],
                kind=str(data.get("kind", "")),
                exit_code=int(data.get("exitCode", 1)),
            )
        return answer["result"]

    def submit(
        self,
        text: str = "",
        *,
        conversation: str | None = None,
        interrupt: bool = False,
        **options: object,
    ) -> SubmittedRequest:
        """Submit a sentence, or with ``call`` a call, and return the request.

        Args:
            interrupt: run it next, and cancel the running one. options: ``call``, ``client_id``,
                ``directory``, ``agreed``, ``model``, ``grammar``, ``reason``, ``attachments``.
        Raises:
            RemoteError: it was refused.
        """
        id = self.follow(conversation)
        request = SubmittedRequest(new_thread_id(time.time_ns() // 1_000_000, os.urandom(10)), id)
        if "client_id" in options:
            options["clientId"] = options.pop("client_id")
        with self._lock:
            self._requests[request.id] = request
        params = {"conversation": id, "text": text, "id": request.id, **options}
        try:
            reply = self._until_reached("interrupt" if interrupt else "submit", params)
        except UncagedError:
            self._requests.pop(request.id, None)
            raise
        if not reply["ok"]:
            self._requests.pop(request.id, None)
            maximum = f" ({reply['maximum']} are the most)" if "maximum" in reply else ""
            raise RemoteError(f"{reply['error']}{maximum}", code=0, kind=reply["error"])
        return request

    def follow(self, conversation: str | None = None, *, after: int | None = None) -> str:
        """Get the records of a conversation as they come, as notices too; return its id.

        Args:
            after: begin with the records after this number; None begins with the next one.
        """
        if conversation is not None and conversation in self._after:
            return conversation
        status = self.call("status", conversation=conversation)
        id, last = str(status["conversation"]), status["after"] if after is None else after
        with self._lock:
            if id in self._after:
                return id
            self._after[id] = last
        self._send("log", {"conversation": id, "after": last, "follow": True}, self._catch_up)
        return id

    def promote(self, request: str, conversation: str | None = None) -> bool:
        """Move a queued request to the front; False if it runs or is unknown."""
        reply = self.call("promote", request=request, conversation=conversation)
        return bool(reply["promoted"])

    def cancel(self, request: str, conversation: str | None = None) -> str:
        """Cancel a request by its id or the client's id."""
        return str(self.call("cancel", request=request, conversation=conversation)["cancelled"])

    def _until_reached(self, method: str, params: Mapping[str, object]) -> Any:
        """Call a method whose repetition changes nothing, also across a lost connection."""
        deadline = time.monotonic() + self._reconnect_s
        while True:
            try:
                return self.call(method, **params)
            except ServerUnreachable:
                if self._is_closed or time.monotonic() >= deadline:
                    raise
                time.sleep(RETRY_S)

    def _send(
        self,
        method: str,
        params: Mapping[str, object],
        answered: Callable[[Mapping[str, Any]], None],
    ) -> None:
        id = next(self._ids)
        with self._lock:
            self._pending[id] = answered
        try:
            self._connection.send(call_text(method, params, id))
        except (ConnectionClosed, OSError) as exc:
            self._pending.pop(id, None)
            raise ServerUnreachable(f"{self._address}: the connection was lost") from exc

    def _connect(self) -> ClientConnection:
        try:
            return self._open.enter_context(
                connect(
                    self._address,
                    additional_headers={"Authorization": f"Bearer {self._token}"},
                    max_size=MAX_MESSAGE_BYTES,
                    proxy=None,
                )
            )
        except InvalidStatus as exc:
            reason = (exc.response.body or b"").decode(errors="replace").strip()
            raise ServerUnreachable(
                f"{self._address}: refused with status {exc.response.status_code}: {reason[:500]}"
            ) from exc
        except (OSError, WebSocketException) as exc:
            raise ServerUnreachable(
                f"{self._address} cannot be reached: {exc}; start `uncaged-workflow serve`"
            ) from exc

    def _run(self) -> None:
        """Handle the server's messages, and connect again when the connection is lost."""
        try:
            while True:
                with suppress(ConnectionClosed), self._open:
                    for text in self._connection:
                        for message in read_answers(text):
                            self._take(message)
                self._drop_pending()
                if self._is_closed or not self._reconnect():
                    break
        finally:
            self._is_closed = True
            self._open.close()
            self._drop_pending()
            for request in list(self._requests.values()):
                request.settle(ServerUnreachable(f"{self._address}: the connection was lost"))

    def _reconnect(self) -> bool:
        deadline = time.monotonic() + self._reconnect_s
        while not self._is_closed and time.monotonic() < deadline:
            try:
                self._connection = self._connect()
                if self._is_closed:  # `close` ended the connection before this one
                    return False
                for id, after in list(self._after.items()):
                    params = {"conversation": id, "after": after, "follow": True}
                    self._send("log", params, self._catch_up)
            except ServerUnreachable:
                time.sleep(RETRY_S)
            else:
                return True
        return False

    def _drop_pending(self) -> None:
        with self._lock:
            lost, self._pending = list(self._pending.values()), {}
        for answered in lost:
            answered({"error": {"code": _LOST, "message": "the connection was lost"}})

    def _take(self, message: RemoteCall | Mapping[str, Any]) -> None:
        """Handle an answer or a notification."""
        if isinstance(message, RemoteCall):
            params: Any = message.params
            if message.method == "record":
                self._record(params["conversation"], params["record"])
            else:
                self._tell(message.method, params)
            return
        with self._lock:
            answered = self._pending.pop(message["id"], None)
        if answered is not None:
            answered(message)

    def _catch_up(self, answer: Mapping[str, Any]) -> None:
        """Handle the records of a page; those after it come as notifications."""
        page = answer.get("result")
        if page is None:  # lost again, or the conversation was deleted
            return
        for record in page["records"]:
            self._record(page["conversation"], record)

    def _record(self, conversation: str, record: Mapping[str, Any]) -> None:
        """Handle a record, unless it was seen before."""
        if record["seq"] <= self._after.get(conversation, 0):
            return
        self._after[conversation] = record["seq"]
        self._tell("record", {"conversation": conversation, "record": record})
        if "result" in record:
            request = self._requests.pop(record["of"], None)
            if request is not None:
                request.settle(record["result"])

    def _tell(self, method: str, params: Mapping[str, Any]) -> None:
        # a caller's bug must not end the connection of its other requests
        if self._notice is not None:
            with suppress(Exception):
                self._notice(method, params)


_LOST = -1
"""Code of the answer that a lost connection puts in the place of the server's."""
