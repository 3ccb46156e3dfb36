"""Connection of a process with many requests, such as the server or the shell, to one conversation.
Its process holds the conversation if the lock is free; the messages go over the conversation's
socket either way.

A conversation of a shared store is held only while it has open requests: other machines cannot
reach its holder, and can use it after that.

A holder may leave or die at any moment. The next one has every accepted request in the log, so an
operation is then sent again; a request has an id, and is the same one a second time.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from uncaged_bundles.errors import RefusedError, UncagedError
from uncaged_engine.api import Engine
from uncaged_engine.services.local_sockets import pack, raise_error, unpack

from ..conversations.execution import Interpret
from ..conversations.holder import Holder
from ..conversations.live import Listener, give
from ..conversations.log import ConversationLog, is_abandoned, socket_of
from ..conversations.requests import ConversationRequest
from ..conversations.serving import MAX_MESSAGE_BYTES, ConversationServer

ANSWER_TIMEOUT_S = 30.0
RETRY_S = 0.05
LOOK_S = 5.0
"""How often a conversation of a shared store is looked at for requests that no process drives."""
QUIET_S = 1.0
"""How long its holder stays without a request."""
MAX_LINE_BYTES = 8 * MAX_MESSAGE_BYTES
Reply = Mapping[str, Any]


class LinkLost(Exception):
    """The connection to the holder ended before the reply."""


class ConversationLink:
    """One conversation as this process reaches it. Its methods belong to the event loop."""

    def __init__(
        self,
        engine: Engine,
        id: str,
        interpret: Callable[[], Interpret],
        clock_ms: Callable[[], int],
        listener: Listener = lambda _event: None,
    ) -> None:
        """Args:
        interpret: makes the reader of sentences, if this process holds the conversation.
        listener: gets each snapshot, the events of the requests that were submitted here and of
            those that their results make, some of them twice after a change of the holder; and
            ``lost`` for a request that was settled long ago.
        """
        self.id = id
        self.users = 0
        """Clients that follow the conversation or use it now."""
        self.snapshot: Mapping[str, Any] | None = None
        """The last snapshot of the queue, with a version that rises also across holders."""
        self._changed = asyncio.Condition()
        self._engine, self._interpret, self._clock_ms = engine, interpret, clock_ms
        self._listener = listener
        self._holding = threading.Lock()
        """Held while this process becomes the holder, or leaves."""
        self._holder: Holder | None = None
        self._server: ConversationServer | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._pending: dict[object, asyncio.Future[Reply]] = {}
        self._tags = itertools.count(1)
        self._version = 0
        self._own: set[str] = set()
        """Open requests of this process's clients, whose questions they answer."""
        self._submitting: set[str] = set()
        """Those that the holder may not know yet."""
        self._waiting = 0
        """Operations whose callers wait for the reply."""
        self._wanted = asyncio.Event()
        self._is_quiet = False
        """Whether nothing runs or is queued, by the last snapshot of this connection."""
        self._is_closing = False
        self._failure: UncagedError | None = None
        self._task = asyncio.create_task(self._run())

    @property
    def is_idle(self) -> bool:
        """Whether nothing is lost if this process leaves the conversation."""
        if self.users or self._pending or self._own:
            return False
        queue = self.snapshot or {}
        return self._holder is None or not (queue.get("running") or queue.get("queued"))

    async def request(self, op: str, **fields: object) -> Reply:
        """Send an operation to the holder and return the reply.

        Raises:
            RefusedError: no holder answered in time. UncagedError: what the holder answered.
        """
        with self._needed():
            reply = await self._replied({"op": op, **fields})
        raise_error(reply if isinstance(reply.get("error"), Mapping) else {})
        return reply

    async def _replied(self, message: Mapping[str, object]) -> Reply:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            with suppress(LinkLost):
                return await self._exchange(message, deadline)
            await asyncio.sleep(RETRY_S)
            if self._failure is not None:
                raise self._failure
            if time.monotonic() >= deadline:
                raise RefusedError(
                    f"conversation {self.id} is in use by another process, which does not answer; try again"
                )

    @contextmanager
    def _needed(self) -> Iterator[None]:
        """Have a conversation of a shared store held while the block runs."""
        if self._engine.is_shared and self._waiting == 0:
            self._failure = None  # of the last try, which may be long ago
        self._waiting += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._waiting -= 1
            self._end_soon()

    async def submit(
        self, request: ConversationRequest, *, interrupt: bool, attended: bool = False
    ) -> Reply:
        """Submit a request, whose questions this process's clients answer. Raises: as `request`.

        attended: a person follows it on a terminal.
        """
        # before the reply: the result may come first
        self._own.add(request.id)
        self._submitting.add(request.id)
        accepted = False
        try:
            reply = await self.request(
                "submit",
                request=request.document(),
                environment=_environment(),
                attended=attended,
                interrupt=interrupt,
            )
            accepted = reply.get("ok") is True
        finally:
            self._submitting.discard(request.id)
            if not accepted:
                self._own.discard(request.id)
        return reply

    async def wait(self, timeout_s: float) -> None:
        """Wait until the conversation changes, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), self._changed:
                await self._changed.wait()

    async def drain(self, timeout_s: float) -> None:
        """Let the holder in this process finish its requests and leave, and close the link."""
        self._is_closing = True
        # if a record cannot be written, the next holder finds the request as it was
        with suppress(UncagedError):
            if self._holder is not None:
                await asyncio.to_thread(self._holder.drain, int(timeout_s * 1000))
        await self.close()

    async def close(self) -> None:
        """Leave the conversation."""
        self._is_closing = True
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self) -> None:
        """Stay connected to the conversation's holder, or be it."""
        try:
            while not self._is_closing:
                try:
                    if self._holder is None:
                        if self._engine.is_shared:
                            await self._until_wanted()
                        await asyncio.to_thread(self._hold)
                    await self._serve_connection()
                    self._failure = None
                except UncagedError as exc:  # a damaged log, a full disk
                    self._failure = exc
                    await asyncio.sleep(20 * RETRY_S)
                except OSError:
                    await asyncio.sleep(RETRY_S)
                if self._holder is not None and not self._is_closing:
                    await asyncio.to_thread(self._leave)
        finally:
            self._disconnect()
            await asyncio.shield(asyncio.to_thread(self._leave))

    async def _until_wanted(self) -> None:
        """Wait until a client sends something, or there are requests that no process drives."""
        while not (self._waiting or self._own):
            self._wanted.clear()
            if await asyncio.to_thread(is_abandoned, self._engine.store, self.id):
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._wanted.wait()

    def _end_soon(self) -> None:
        if self._engine.is_shared and not self._is_closing:
            asyncio.get_running_loop().call_later(QUIET_S, self._end_if_quiet)

    def _end_if_quiet(self) -> None:
        """End the connection to the holder in this process, which then leaves, if there is nothing
        to do.
        """
        is_over = self._is_quiet and not (self._waiting or self._own)
        if is_over and self._holder is not None and self._writer is not None:
            self._writer.close()

    def _hold(self) -> None:
        """Become the holder if the lock is free."""
        store = self._engine.store
        with self._holding:
            if self._is_closing:
                return
            log = ConversationLog.open(store, self.id, self._clock_ms)
            if log is None:
                return
            try:
                holder = Holder(self._engine, log, self._interpret(), self._clock_ms)
                server = ConversationServer(store, holder)
            except BaseException:
                log.close()
                raise
            self._server, self._holder = server, holder.__enter__()

    def _leave(self) -> None:
        """Give the conversation to the next holder."""
        with self._holding:
            holder, server = self._holder, self._server
            self._holder = self._server = None
            if holder is None or server is None:
                return
            server.unlink()
            holder.leave()
            server.close()

    async def _serve_connection(self) -> None:
        """Connect to the holder and read its messages until it leaves."""
        path = str(socket_of(self._engine.store, self.id))
        reader, self._writer = await asyncio.open_unix_connection(path, limit=MAX_LINE_BYTES)
        self._is_quiet = False
        try:
            self._write({"op": "observe", "tag": "observe"})
            for id in sorted(self._own - self._submitting):
                self._attach(id)
            while line := await reader.readline():
                message = unpack(line)
                if message.get("event") == "left":
                    return
                await self._take(message)
        except ValueError as exc:  # a line without end, or no JSON
            raise UncagedError(
                f"conversation {self.id}: a message that is not understood: {exc}"
            ) from exc
        finally:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        for future in self._pending.values():
            if not future.done():
                future.set_exception(LinkLost())
        self._pending.clear()

    async def _take(self, message: Mapping[str, Any]) -> None:
        """Handle a reply or an event of the holder."""
        tag = message.get("tag")
        future = self._pending.pop(tag, None)
        if future is not None:
            if not future.done():
                future.set_result({key: message[key] for key in message if key != "tag"})
            return
        if isinstance(tag, str) and "error" in message:
            self._own.discard(tag)  # it was settled long ago
            give(self._listener, {"event": "lost", "id": tag})
        elif isinstance(message.get("snapshot"), dict):
            self._version += 1
            self.snapshot = {**message["snapshot"], "version": self._version}
            self._is_quiet = not (self.snapshot.get("running") or self.snapshot.get("queued"))
            self._end_soon()
            give(self._listener, {"event": "snapshot"})
        elif message.get("event") == "result":
            self._own.discard(message["id"])
            for id in message["next"]:
                self._own.add(id)
                self._attach(id)
            self._end_soon()
        if "id" in message and "event" in message:
            give(self._listener, message)
        async with self._changed:
            self._changed.notify_all()

    async def _exchange(self, message: Mapping[str, object], deadline: float) -> Reply:
        """Send a message and return the reply.

        Raises:
            LinkLost: there is no connection, or it ended, or the time is over.
        """
        tag = next(self._tags)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._pending[tag] = future
        try:
            self._write({**message, "tag": tag})
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                return await future
        except TimeoutError as exc:
            raise LinkLost from exc
        finally:
            self._pending.pop(tag, None)

    def _attach(self, id: str) -> None:
        """Get the events of a request, so that its questions wait for our clients."""
        self._write({"op": "attach", "id": id, "tag": id})

    def _write(self, message: Mapping[str, object]) -> None:
        if self._writer is None:
            raise LinkLost
        self._writer.write(pack(message))


def _environment() -> dict[str, str]:
    """Return the environment of this process, for the child processes of its clients' threads."""
    return {
        name: text
        for name, text in os.environ.items()
        if not any("\ud800" <= character <= "\udfff" for character in name + text)
    }
