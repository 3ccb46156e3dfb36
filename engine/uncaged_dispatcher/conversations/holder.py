"""Holder of a conversation: the one process that accepts its requests and drives them in order.

The log's lock makes a process the holder. Leaving is the same as being killed, but that it waits
while a thread is being started: what is not settled goes on with the next holder.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_engine.api import Engine

from .driving import RequestLoop
from .execution import Interpret
from .feedback import Feedback
from .following import cancelled_result
from .held import HeldConversation, stopping_result
from .live import NO_CALLER, UNANSWERED, Caller, Listener, LiveRequest, give
from .log import ConversationLog
from .records import ConversationState
from .request_queue import DRAIN_TIMEOUT_MS, CancelResult, QueueSnapshot, SubmitRefusal
from .requests import ConversationRequest
from .thread_questions import KIND, check_thread_answer

PUT_S = 10.0
"""How long an answer waits until a new holder has put the question again."""


class Holder:
    """The owner of a conversation's log. Its methods may be called by any thread."""

    def __init__(
        self,
        engine: Engine,
        log: ConversationLog,
        interpret: Interpret,
        clock_ms: Callable[[], int],
    ) -> None:
        self._held = HeldConversation(engine, log, clock_ms)
        loop = RequestLoop(self._held, interpret)
        self._thread = threading.Thread(target=loop.run, name="requests", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()

    @property
    def state(self) -> ConversationState:
        """Return what the log adds up to."""
        return self._held.log.state

    @property
    def failure(self) -> BaseException | None:
        """Return the error that ended the thread of execution, such as a full disk."""
        return self._held.failure

    def submit(
        self,
        request: ConversationRequest,
        *,
        listener: Listener | None = None,
        caller: Caller = NO_CALLER,
        interrupt: bool = False,
        durable: bool = True,
        last: bool = False,
    ) -> SubmitRefusal | None:
        """Accept a request, or find the one with this id; None if it is in the conversation.

        Args:
            listener: gets the request's events.
            interrupt: run it next, and cancel the running one.
            durable: flush it before this returns; else it is flushed with its thread's id.
            last: start no request after this one and those that its result makes.
        Raises:
            HolderLeft: this process does not hold the conversation any more.
        """
        held = self._held
        with held.changed:
            held.require_here()
            is_known = request.id in self.state.known
            refusal = (
                self._again(request, listener, caller) if is_known else held.queue.refusal(request)
            )
            if last and refusal is None:
                held.last.add(request.id)
                held.changed.notify_all()
            if is_known or refusal is not None:
                return refusal
            live = held.accept(request, caller, first=interrupt)
            if durable:
                held.log.flush()
            if interrupt:
                _, cancelled = held.queue.interrupt(request)
                if cancelled is not None:
                    held.end_running(held.live[cancelled], "interrupt")
            else:
                held.queue.submit(request)
            live.emit("accepted", **self._place(request.id))
            if listener is not None:
                live.listen(listener)
                held.report_block(live, listener)
            held.changed.notify_all()
        return None

    def attach(self, id: str, listener: Listener) -> None:
        """Give a listener the events of a request, past and future.

        Raises:
            NotFoundError: the conversation has no such request, or it was settled long ago.
        """
        held = self._held
        with held.changed:
            held.require_here()
            live, exchange = held.live.get(id), self.state.exchange(id)
            if live is not None:
                live.listen(listener)
            elif exchange is not None:
                result = exchange.result.document()
                ended = {"seq": exchange.seq, "result": result, "next": []}
                give(listener, {"event": "result", "id": id, **ended})
            else:
                raise NotFoundError(
                    f"no request {id[:80]!r} among the last ones of this conversation"
                )

    def detach(self, listener: Listener) -> None:
        """Remove a listener from all requests."""
        held = self._held
        with held.changed:
            for live in held.live.values():
                # by equality: a bound method is another object each time
                live.listeners = [one for one in live.listeners if one != listener]
            held.changed.notify_all()

    def promote(self, id: str) -> bool:
        """Move a queued request to the front; False if it runs or is unknown."""
        held = self._held
        with held.changed:
            held.require_here()
            entry = held.queue.find(id)
            if entry is None or entry.state != "queued":
                return False
            held.log.promote(entry.request.id)
            held.log.flush()
            return held.queue.promote(id)

    def cancel(self, text: str) -> CancelResult:
        """Cancel a request by its id or the client's id. One that runs ends when its thread has
        really ended.
        """
        held = self._held
        with held.changed:
            held.require_here()
            entry = held.queue.find(text)
            if entry is None:
                return "not_found"
            live = held.live[entry.request.id]
            if entry.state == "queued" and live.open.has_begun:
                # of a former holder: its thread may run, and is killed when its turn comes
                held.end_running(live, "cancel")
                return "cancelled_running"
            found = held.queue.cancel(entry.request.id)
            if entry.state == "queued":
                held.report(live, cancelled_result())
            elif entry.state != "cancelling" or live.is_unkilled:
                live.is_unkilled = False
                held.end_running(live, "cancel")
            return found

    def cancel_alone(self, text: str) -> CancelResult:
        """Cancel a request, and return when it has really ended. Called instead of entering the
        holder; no other request is started.
        """
        held = self._held
        with held.changed:
            entry, found = held.queue.find(text), self.cancel(text)
            if entry is None or found != "cancelled_running":
                return found
            held.last.add(entry.request.id)
            self._thread.start()
            held.changed.wait_for(lambda: held.is_leaving or entry.request.id not in held.live)
            if held.failure is not None:
                raise held.failure
        return found

    def answer(self, id: str, question: int, value: Mapping[str, object]) -> None:
        """Answer the open question of a request; the first answer counts.

        Raises:
            RefusedError: it does not ask that question (any more). UsageError: the value is no
                answer to the thread's question.
        """
        held = self._held
        with held.changed:
            held.changed.wait_for(lambda: not self._will_ask(id, question), timeout=PUT_S)
            live = self._asking(id, question)
            asked = live.open.question or {}
        # a long journal is read, and nothing else waits for it
        if asked.get("kind") == KIND:
            value = check_thread_answer(held.engine.thread(asked["threadId"]), asked, value)
        with held.changed:
            live = self._asking(id, question)
            if live.answer is UNANSWERED:
                live.answer = dict(value)
                held.changed.notify_all()

    def wait_for_room(self) -> None:
        """Wait until the queue takes another request, or this process holds it no more."""
        held = self._held
        with held.changed:
            held.changed.wait_for(lambda: held.is_leaving or held.queue.has_room)

    def snapshot(self) -> QueueSnapshot:
        """Return the present queue."""
        with self._held.changed:
            return self._held.queue.snapshot()

    def observe(self, observer: Callable[[QueueSnapshot], None]) -> Callable[[], None]:
        """Call *observer* with each later snapshot; return a function that ends this."""
        with self._held.changed:
            return self._held.queue.observe(observer)

    def settings(self, changed: Mapping[str, object]) -> None:
        """Record settings of the conversation that changed."""
        with self._held.changed:
            self._held.require_here()
            self._held.log.settings(changed)

    def feedback(self, id: str, feedback: Feedback) -> None:
        """Record the person's feedback on a request."""
        with self._held.changed:
            self._held.require_here()
            if id not in self.state.known:
                raise NotFoundError(f"no request {id[:80]!r} in this conversation")
            self._held.log.feedback(id, feedback)

    def drain(self, timeout_ms: int = DRAIN_TIMEOUT_MS) -> None:
        """Refuse new requests, wait for those that are there, reject after the timeout those that
        have not started, and leave. A thread that waits for an answer is not waited for, unless
        other requests are behind it.
        """
        held = self._held
        until = time.monotonic() + timeout_ms / 1000
        with held.changed:
            now_ms = held.clock_ms()
            held.queue.drain(now_ms, timeout_ms)
            held.changed.wait_for(
                lambda: held.queue.is_idle or held.is_leaving or held.is_asking_alone(),
                timeout=max(0.0, until - time.monotonic()),
            )
            if not held.is_leaving:
                for request in held.queue.expire(now_ms + timeout_ms):
                    held.report(held.live[request.id], stopping_result())
        self.leave()

    def leave(self) -> None:
        """Release the conversation; a thread that runs goes on. Idempotent."""
        with self._held.changed:
            self._held.close()

    def _asking(self, id: str, question: int) -> LiveRequest:
        """Return the request that asks this question."""
        held = self._held
        held.require_here()
        live = held.live.get(id)
        if live is None or question == 0 or live.question != question:
            raise RefusedError(f"request {id[:80]!r} does not ask that question (any more)")
        return live

    def _will_ask(self, id: str, question: int) -> bool:
        """Tell whether a request that a former holder left with this question is yet to put it."""
        live = self._held.live.get(id)
        return (
            not self._held.is_leaving
            and live is not None
            and live.question == 0
            and live.open.question is not None
            and live.open.question_seq == question
        )

    def _again(
        self, request: ConversationRequest, listener: Listener | None, caller: Caller
    ) -> SubmitRefusal | None:
        """Attach to the request that was submitted before with this id."""
        if self.state.known[request.id] != request.content:
            return SubmitRefusal(reason="duplicate_id")
        live = self._held.live.get(request.id)
        if live is not None and not live.has_started:
            live.caller = caller
        if listener is not None:
            self.attach(request.id, listener)
            if live is not None:
                self._held.report_block(live, listener)
        return None

    def _place(self, id: str) -> dict[str, object]:
        """Return where a request is in the queue, and the contents of those before it."""
        snapshot = self._held.queue.snapshot()
        running = () if snapshot.running is None else (snapshot.running,)
        contents = {
            entry.request.id: entry.request.content for entry in (*running, *snapshot.queued)
        }
        before = list(contents.values())[: list(contents).index(id)]
        return {"position": len(before), "ahead": [content[:200] for content in before[:5]]}
