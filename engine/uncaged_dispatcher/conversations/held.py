"""Conversation that this process holds: its log, its queue and its live requests, under one lock.

Rule 1: each change is in the log before it is seen outside.
Rule 2: a holder that leaves, or fails, closes the log; no call writes to it after that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from uncaged_bundles.errors import UncagedError
from uncaged_engine.api import Engine
from uncaged_engine.door.children import derived_id

from ..calls import Call
from .execution import kill
from .live import Caller, LiveRequest
from .log import ConversationLog
from .request_queue import MAX_QUEUED, RequestQueue
from .requests import ConversationRequest
from .results import RequestResult

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

    def is_past_last(self) -> bool:
        """Whether the requests after which this holder starts no other are settled."""
        return bool(self.last) and self.last.isdisjoint(self.live)

    def report(self, live: LiveRequest, result: RequestResult) -> None:
        """Record a result, with the requests that it makes, and report it."""
        id = live.request.id
        made = self._make_requests(live, result)
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

    def _make_requests(self, live: LiveRequest, result: RequestResult) -> list[ConversationRequest]:
        """Record the requests that a result makes. They come before it in the log: after a crash in
        between they are made again, under the same ids.
        """
        parent = live.request
        if self.queue.is_stopping or parent.depth >= DEEPEST:
            return []
        room = MAX_QUEUED - len(self.queue.snapshot().queued)
        created_ms = self.log.state.created_ms
        made = [
            _next_request(parent, call, number, created_ms)
            for number, call in enumerate(result.follow_ups[:room])
        ]
        for request in reversed(made):
            if request.id not in self.log.state.known:
                self.accept(request, live.caller, first=True)
        return [request for request in made if request.id in self.live]

    def end_running(self, live: LiveRequest, why: str) -> None:
        """Cancel the running request: kill its thread, or let its execution find the mark."""
        self.log.cancel(live.request.id, why)
        self.changed.notify_all()
        running = live.thread if live.has_started else live.translation
        if running is not None:
            # a kill waits for the worker, and the queue does not wait for a kill
            threading.Thread(
                target=kill, args=(self.engine, running), name="kill", daemon=True
            ).start()

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
