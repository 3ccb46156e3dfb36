"""One client's WebSocket: reads its calls, performs them, and sends answers and notifications.

Rule 1: a client that does not read is dropped when a message could not be sent in time; all that
waits for it is bounded.
Rule 2: a client's calls are read only as fast as the limits allow; the rest waits in its own
connection.
Rule 3: calls that change a conversation are performed in the order in which they came.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from uncaged_bundles.errors import (
    StorageError,
    UncagedError,
    UsageError,
    os_problem,
    without_thread,
)
from uncaged_bundles.shapes import ShapeError

from .hub import ConversationHub
from .jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    REFUSED,
    CallBatch,
    CallId,
    RemoteCall,
    Response,
    call_text,
    error_answer,
    read_calls,
    result_answer,
)
from .methods import METHODS, MethodContext, perform
from .readings import SentenceReadings
from .tail import LogTail

WRITE_S = 10.0
MAX_RUNNING = 8
"""Calls of one client that are performed at a time."""
MAX_FOLLOWED = 32
CALLS_PER_S = 200
BURST = 400
POLL_S = 0.2
OUTAGE_PAUSE_S = 1.0
"""Between two looks at a store that is away."""


class ClientLost(Exception):
    """The client is gone, or was dropped."""


class RateLimit:
    """Token bucket: so many at once, and so many each second."""

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float]) -> None:
        self._per_s, self._burst, self._clock = per_s, burst, clock
        self._tokens, self._at = burst, clock()

    def take(self, count: int) -> float:
        """Take tokens and return the seconds until they are there."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_s)
        self._at = now
        self._tokens -= count
        return max(0.0, -self._tokens / self._per_s)


class WirePeer:
    """One connected client."""

    def __init__(
        self,
        websocket: WebSocket,
        hub: ConversationHub,
        readings: SentenceReadings,
        *,
        write_s: float = WRITE_S,
    ) -> None:
        self._websocket, self._hub = websocket, hub
        self._context = MethodContext(hub=hub, readings=readings, client=self)
        self._write_s = write_s
        self._writing = asyncio.Lock()
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._in_use: set[CallId] = set()
        self._followed: dict[str, asyncio.Task[None]] = {}
        self._following = asyncio.Lock()
        """Held while a conversation is added, so that each is followed once."""
        self._is_finishing = False
        self._tasks: asyncio.TaskGroup
        self._limit = RateLimit(CALLS_PER_S, BURST, time.monotonic)

    async def serve(self) -> None:
        """Serve the client until it disconnects, or is dropped."""
        try:
            async with asyncio.TaskGroup() as self._tasks:
                await self._read()
        except* ClientLost:
            pass

    async def follow(self, conversation: str, after: int | None) -> None:
        """Send the records after a number, or from now on, unless the client gets them already."""
        async with self._following:
            task = self._followed.get(conversation)
            if task is not None and not task.done():
                return
            followed = [id for id, task in self._followed.items() if not task.done()]
            if len(followed) >= MAX_FOLLOWED:
                raise UsageError(f"a client follows at most {MAX_FOLLOWED} conversations at a time")
            tail = await asyncio.to_thread(LogTail, self._hub.engine.store, conversation, after)
            made = self._tasks.create_task(self._follow(conversation, tail))
            made.add_done_callback(lambda _: tail.close())
            self._followed[conversation] = made

    def unfollow(self, conversation: str) -> bool:
        """Send no more records of a conversation; False if none were sent."""
        task = self._followed.pop(conversation, None)
        return task is not None and task.cancel()

    async def finish(self) -> None:
        """Send the records that are in the logs now, and follow no longer."""
        self._is_finishing = True
        if self._followed:
            await asyncio.wait(self._followed.values(), timeout=self._write_s)

    async def _read(self) -> None:
        while True:
            try:
                message = await self._websocket.receive()
            except (WebSocketDisconnect, RuntimeError) as exc:
                raise ClientLost from exc
            if message["type"] == "websocket.disconnect":
                raise ClientLost
            text = message.get("text")
            batch = read_calls(message["bytes"] if text is None else text)
            await asyncio.sleep(self._limit.take(max(1, len(batch.calls) + len(batch.errors))))
            await self._slots.acquire()
            if all(_is_ordered(call) for call in batch.calls):
                await self._perform(batch)
            else:
                self._tasks.create_task(self._perform(batch))

    async def _perform(self, batch: CallBatch) -> None:
        """Perform the calls of a message, and answer it."""
        try:
            answers = [await self._answer(call) for call in batch.calls]
            text = batch.answer([answer for answer in answers if answer is not None])
            if text is not None:
                await self._send(text)
        finally:
            self._slots.release()

    async def _answer(self, call: RemoteCall) -> Response | None:
        if call.id is None:
            await self._result(call, "")
            return None
        if call.id in self._in_use:
            # an answer with this id would be taken for that of the other call
            return error_answer(
                None, INVALID_REQUEST, f"the id {call.id!r:.80} belongs to a call without an answer"
            )
        self._in_use.add(call.id)
        try:
            return await self._result(call, call.id)
        finally:
            self._in_use.discard(call.id)

    async def _result(self, call: RemoteCall, id: CallId) -> Response:
        """Perform a call and return its answer."""
        if call.method not in METHODS:
            known = ", ".join(METHODS)
            return error_answer(
                id, METHOD_NOT_FOUND, f"no method {call.method[:80]!r}; there are {known}"
            )
        if not isinstance(call.params, Mapping):
            return error_answer(id, INVALID_PARAMS, "params are an object, by name")
        try:
            return result_answer(id, await perform(self._context, call.method, dict(call.params)))
        except ShapeError as exc:
            return error_answer(id, INVALID_PARAMS, str(exc))
        except OSError as exc:
            return error_answer(id, REFUSED, os_problem(exc))
        except UncagedError as exc:
            data = {"kind": type(exc).__name__, "exitCode": exc.exit_code}
            return error_answer(id, REFUSED, without_thread(exc), data)

    async def _follow(self, conversation: str, tail: LogTail) -> None:
        """Send records and snapshots of a conversation."""
        try:
            async with self._hub.using(conversation) as link:
                version = 0
                while True:
                    is_last = self._is_finishing
                    snapshot = link.snapshot
                    if snapshot is not None and snapshot["version"] > version:
                        version = snapshot["version"]
                        await self._notify("snapshot", conversation, snapshot=snapshot)
                    records = await _read(tail)
                    for record in records:
                        await self._notify("record", conversation, record=record)
                    if not records:  # else more may be there already
                        if is_last:
                            return
                        await link.wait(POLL_S)
        except UncagedError as exc:
            await self._notify("lost", conversation, message=str(exc))
        except OSError as exc:
            await self._notify("lost", conversation, message=os_problem(exc))

    async def _notify(self, method: str, conversation: str, **params: Any) -> None:
        await self._send(call_text(method, {"conversation": conversation, **params}))

    async def _send(self, text: str) -> None:
        """Send a message; a client that does not read it in time is dropped.

        Raises:
            ClientLost: it was dropped, or had gone.
        """
        try:
            async with asyncio.timeout(self._write_s), self._writing:
                if self._websocket.application_state is not WebSocketState.CONNECTED:
                    raise ClientLost
                await self._websocket.send_text(text)
        except (TimeoutError, WebSocketDisconnect, RuntimeError, OSError) as exc:
            raise ClientLost from exc


async def _read(tail: LogTail) -> Sequence[Mapping[str, Any]]:
    """Return the next records; none while the store is away."""
    if not tail.has_more():
        return ()
    try:
        return await asyncio.to_thread(tail.read)
    except StorageError:
        await asyncio.sleep(OUTAGE_PAUSE_S)
        return ()


def _is_ordered(call: RemoteCall) -> bool:
    return call.method not in METHODS or METHODS[call.method].ordered
