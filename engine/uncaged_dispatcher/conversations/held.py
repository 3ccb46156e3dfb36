"""Conversation that this process holds: its log, its queue and its live requests, under one lock.

Rule 1: each change is in the log before it is seen outside.
Rule 2: a holder that leaves, or fails, closes the log; no call writes to it after that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.records import replace
from uncaged_engine.api import Engine
from uncaged_engine.door.children import derived_id

from ..calls import Call
from .following import kill
from .live import Caller, Listener, LiveRequest, give
from .log import ConversationLog
from .request_queue import MAX_QUEUED, RequestQueue
from .requests import ConversationRequest
from .results import RequestResult
from .thread_questions import KIND

DEEPEST = 16
"""So many results in a row may ask for further calls."""


class HolderLeft(Exception):
    """The holder left the conversation; another process continues."""


class HeldConversation:
    """State that the holder's callers and its thread of execution share. The names without an
    underscore are for them, with `changed` held.
    """

    def __init__(self, engine: Engine, log: ConversationLog, clock_ms: Callable[[], int]) -> None:
        self.engine = engine
        self.log = log
        self.clock_ms = clock_ms
        self.changed = threading.Condition()
        self.live = {one.request.id: LiveRequest(one) for one in log.state.open}
        self.queue = RequestQueue(one.request for one in log.state.open)
        self.last: set[str] = set()
        """The requests after which this holder starts no other."""
        self.is_leaving = False
        self.is_starting = False
        self.failure: BaseException | None = None
        """The error that ended the thread of execution."""

    def require_here(self) -> None:
        """Raise HolderLeft, or the error that ended the thread of execution."""
        if self.failure is not None:
            raise self.failure
        if self.is_leaving:
            raise HolderLeft

    def accept(self, request: ConversationRequest, caller: Caller, *, first: bool) -> LiveRequest:
        """Record a request."""
        self.log.request(request, first=first)
        self.live[request.id] = live = LiveRequest(self.log.state.open_request(request.id), caller)
        return live

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Keep the holder here while a worker is being started: one that left now would start it
        beside the next holder. Entered and left without `changed`.
        """
        with self.changed:
            self.require_here()
            self.is_starting = True
        try:
            yield
        finally:
            with self.changed:
                self.is_starting = False
                self.changed.notify_all()

    def report_block(self, live: LiveRequest, listener: Listener) -> None:
        """Tell a listener of a queued request which thread's question the running one waits for, if
        it does. The event is not kept for later listeners.
        """
        blocked = self._blocked()
        if blocked is not None and blocked["of"] != live.request.id:
            give(listener, {"event": "blocked", "id": live.request.id, **blocked})

    def _blocked(self) -> dict[str, object] | None:
        running = self.queue.snapshot().running
        live = None if running is None else self.live.get(running.request.id)
        if live is None or not live.question or live.open.question is None:
            return None
        if live.open.question.get("kind") != KIND:
            return None
        return {
            "of": live.request.id,
            "seq": live.question,
            "question": live.open.question,
            "attended": bool(live.listeners),
        }

    def is_asking_alone(self) -> bool:
        """Whether the only request waits for the answer to its thread's question."""
        return self._blocked() is not None and not self.queue.snapshot().queued

    def is_past_last(self) -> bool:
        """Whether the requests after which this holder starts no other are settled."""
        return bool(self.last) and self.last.isdisjoint(self.live)

    def report(self, live: LiveRequest, result: RequestResult) -> None:
        """Record a result, with the requests that it makes, and report it."""
        id = live.request.id
        made, problem = self._make_requests(live, result)
        if problem:
            result = replace(result, problems=(*result.problems, problem))
        seq = self.log.result(id, result)
        del self.live[id]
        for request in reversed(made):
            if self.queue.find(request.id) is None:
                self.queue.submit(request, first=True)
        ids = [request.id for request in made]
        if id in self.last:
            self.last.update(ids)
        live.emit("result", seq=seq, result=result.document(), next=ids)
        self.changed.notify_all()

    def _make_requests(
        self, live: LiveRequest, result: RequestResult
    ) -> tuple[list[ConversationRequest], str]:
        """Record the requests that a result makes. They come before it in the log: after a crash in
        between they are made again, under the same ids.

        Returns:
            The requests, and why there are fewer than the result asks for; "" if there are not.
        """
        parent = live.request
        room, why = self._room_after(parent)
        created_ms = self.log.state.created_ms
        made = [
            _next_request(parent, call, number, created_ms)
            for number, call in enumerate(result.follow_ups[:room])
        ]
        for request in reversed(made):
            if request.id not in self.log.state.known:
                self.accept(request, live.caller, first=True)
        left = len(result.follow_ups) - len(made)
        problem = f"next: {left} of {len(result.follow_ups)} calls were not made: {why}"
        return [request for request in made if request.id in self.live], problem if left else ""

    def _room_after(self, parent: ConversationRequest) -> tuple[int, str]:
        """Return how many requests the result of *parent* may make, and why no more."""
        if self.queue.is_stopping:
            return 0, "the server is stopping"
        if parent.depth >= DEEPEST:
            return 0, f"{DEEPEST} results in a row have asked for further calls"
        queued = len(self.queue.snapshot().queued)
        return max(
            0, MAX_QUEUED - queued
        ), f"{MAX_QUEUED} requests are queued, the most there may be"

    def end_running(self, live: LiveRequest, why: str) -> None:
        """Cancel the running request: kill its thread, or let its execution find the mark."""
        self.log.cancel(live.request.id, why)
        self.changed.notify_all()
        running = live.thread if live.has_started else live.translation
        if running is not None:
            # a kill waits for the worker, and the queue does not wait for a kill
            threading.Thread(
                target=self._kill, args=(live, running), name="kill", daemon=True
            ).start()

    def _kill(self, live: LiveRequest, thread: str) -> None:
        """Kill a request's thread, or report why it goes on; the next cancel tries it again."""
        try:
            kill(self.engine, thread)
        except (UncagedError, OSError) as problem:
            with self.changed:
                live.is_unkilled = True
                live.emit("problem", message=f"thread {thread} could not be killed: {problem}")

    def close(self, problem: BaseException | None = None) -> None:
        """Release the log. problem: the error that ended the thread of execution."""
        self.failure = self.failure or problem
        self.is_leaving = True
        self.changed.notify_all()
        self.changed.wait_for(lambda: not self.is_starting)
        self.log.close()
        for live in self.live.values():
            live.emit("left")
            live.listeners.clear()


def _next_request(
    parent: ConversationRequest, call: Call, number: int, created_ms: int
) -> ConversationRequest:
    return ConversationRequest(
        id=derived_id(f"{parent.id}/{number}", created_ms),
        call=call,
        parent=parent.id,
        depth=parent.depth + 1,
        directory=parent.directory,
    )


def stopping_result() -> RequestResult:
    """Return the result of a request that was still queued when its server stopped."""
    return RequestResult(
        status="server_stopping",
        success=False,
        message="rejected: the server stopped before its turn",
        exit_code=UncagedError.exit_code,
    )
