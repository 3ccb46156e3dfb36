"""Requests of the shell on their way to the holders of their conversations, which the shell's own
process may be. The connections belong to an event loop in a thread of its own.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from uncaged_bundles.errors import RefusedError, UncagedError
from uncaged_bundles.records import dataclass, field
from uncaged_dispatcher.conversations.live import RequestEvent
from uncaged_dispatcher.conversations.reader import ConversationReader
from uncaged_dispatcher.conversations.requests import ConversationRequest
from uncaged_dispatcher.conversations.session_answers import (
    Respond,
    SessionAnswer,
    SessionAnswers,
)
from uncaged_dispatcher.conversations.sessions import RequestProgress, check_reply
from uncaged_dispatcher.wire.link import ConversationLink
from uncaged_engine.api import Engine

from ..runtime import now_ms

T = TypeVar("T")
TIMEOUT_S = 60.0
CLOSED: RequestEvent = {"event": "closed"}


@dataclass(slots=True, kw_only=True)
class ShellRequest:
    """A request of this shell that is not settled. running: one of its threads is being followed.
    started: it had a thread. settled: set once nothing more is shown of it.
    """

    request: ConversationRequest
    conversation: str
    reply: Future[Mapping[str, Any]] = field(default_factory=Future)
    running: bool = False
    started: bool = False
    settled: threading.Event = field(default_factory=threading.Event)
    events: queue.SimpleQueue[RequestEvent] = field(default_factory=queue.SimpleQueue)


class Submission:
    """Links of the conversations that the shell uses, and its requests there. Any thread may call
    its methods but the loop's own.
    """

    def __init__(self, engine: Engine, changed: Callable[[], None]) -> None:
        """Args: changed: called when the status of a conversation may have changed."""
        self._engine = engine
        self._changed = changed
        self._links: dict[str, ConversationLink] = {}
        self._open: dict[str, ShellRequest] = {}
        """The shell's requests, and those that their results made, by id."""
        self._loop = asyncio.new_event_loop()
        self._order = asyncio.Lock()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()

    def join(self, id: str) -> None:
        """Connect to a conversation, and hold it if it is free."""
        self._call(self._join(id))

    def leave(self, id: str) -> None:
        """Leave a conversation.

        Raises:
            RefusedError: requests of this shell are not settled there.
        """
        if any(one.conversation == id for one in tuple(self._open.values())):
            raise RefusedError(
                "requests of this shell run in that conversation; wait for them, or cancel them with Ctrl-C"
            )
        self._call(self._leave(id))

    def close(self) -> None:
        """Leave all conversations; what runs there goes on."""
        for one in tuple(self._open.values()):
            one.events.put(CLOSED)
        with suppress(TimeoutError):
            self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def snapshot(self, id: str) -> Mapping[str, Any] | None:
        """Return the queue of a conversation; None before it is known."""
        link = self._links.get(id)
        return None if link is None else link.snapshot

    def unsettled(self, id: str | None = None) -> list[ShellRequest]:
        """Return the shell's requests that have no result, the first one first."""
        found = [one for key, one in tuple(self._open.items()) if key == one.request.id]
        return [one for one in found if id is None or one.conversation == id]

    def submit(self, id: str, request: ConversationRequest) -> ShellRequest:
        """Send a request after those that were sent before; `events` has its events."""
        one = ShellRequest(request=request, conversation=id)
        self._open[request.id] = one
        asyncio.run_coroutine_threadsafe(self._submit(one), self._loop)
        return one

    def events(self, one: ShellRequest, respond: Respond) -> Generator[RequestEvent, None, None]:
        """Yield the events of a request, and those of the requests that its result makes; the last
        one is a result.

        Raises:
            RefusedError: it was not accepted, or its question was not answered. UncagedError: the
            conversation cannot be used.
        """
        progress, seen = RequestProgress(one.request.id), set[int]()
        answers = SessionAnswers(respond)
        try:
            check_reply(one.reply.result())
            while progress.waiting:
                event = one.events.get()
                if event is CLOSED:
                    return
                # another holder repeats what is in the log
                if event.get("seq") in seen:
                    continue
                seen.update({event["seq"]} if "seq" in event else ())
                if event["event"] == "lost":
                    raise UncagedError(
                        "the connection to this request was lost; `@history` shows its result"
                    )
                progress.add(event)
                one.running = event["event"] in ("thread", "answered")
                one.started = one.started or one.running
                yield event  # the thread is followed to its end meanwhile
                one.running = False
                answer = answers.to(event)
                while answer is not None:
                    give = partial(self._answer, one, answer)
                    answer = answers.replied(answer.question, give)
        except BaseException:
            for id in progress.unstarted():
                with suppress(UncagedError, TimeoutError):
                    self.cancel(one.conversation, id)
            raise
        finally:
            for id in [id for id, other in tuple(self._open.items()) if other is one]:
                self._open.pop(id, None)
            one.settled.set()
            self._changed()

    def cancel(self, conversation: str, id: str) -> str:
        """Cancel a request, and return ``cancelled_queued``, ``cancelled_running`` or
        ``not_found``.
        """
        return str(self._call(self._request(conversation, "cancel", id=id))["cancelled"])

    def _answer(self, one: ShellRequest, answer: SessionAnswer) -> None:
        fields = {"id": answer.id, "question": answer.question, "value": dict(answer.value)}
        self._call(self._request(one.conversation, "answer", **fields))

    def _call(self, action: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(action, self._loop).result(TIMEOUT_S)

    async def _join(self, id: str) -> ConversationLink:
        if id not in self._links:
            self._links[id] = ConversationLink(
                self._engine,
                id,
                lambda: ConversationReader(self._engine, now_ms),
                now_ms,
                self._take,
            )
        return self._links[id]

    async def _leave(self, id: str) -> None:
        link = self._links.pop(id, None)
        if link is not None:
            await link.close()

    async def _close(self) -> None:
        await asyncio.gather(*(self._leave(id) for id in tuple(self._links)))

    async def _submit(self, one: ShellRequest) -> None:
        link = await self._join(one.conversation)
        async with self._order:
            try:
                reply = await link.submit(one.request, interrupt=False, attended=True)
            except UncagedError as exc:
                one.reply.set_exception(exc)
            else:
                one.reply.set_result(reply)

    async def _request(self, conversation: str, op: str, /, **fields: object) -> Mapping[str, Any]:
        link = await self._join(conversation)
        return await link.request(op, **fields)

    def _take(self, event: RequestEvent) -> None:
        """Give an event of a link to its request."""
        one = self._open.get(event.get("id", ""))
        if one is not None:
            if event["event"] == "result":
                self._open.update(dict.fromkeys(event["next"], one))
            one.events.put(event)
        self._changed()
