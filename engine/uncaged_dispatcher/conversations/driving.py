"""Thread of execution of a holder: takes the queue's requests one at a time and executes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId

from ..calls import Call
from .execution import Interpret, execute
from .following import kill
from .held import HeldConversation, HolderLeft
from .live import UNANSWERED, LiveRequest
from .records import ConversationState

POLL_S = 0.2
"""A thread that waits for an answer has no worker that could report that it got one."""


class RequestLoop:
    """Executes requests until the holder leaves; what an execution reports is in the log first."""

    def __init__(self, held: HeldConversation, interpret: Interpret) -> None:
        self._held = held
        self._interpret = interpret

    @property
    def state(self) -> ConversationState:
        """Return what the log adds up to."""
        return self._held.log.state

    def run(self) -> None:
        """Execute requests. An error that is no request's own ends the holder."""
        held = self._held
        try:
            while (live := self._next()) is not None:
                result = execute(held.engine, self._interpret, self, live, held.clock_ms())
                with held.changed:
                    held.require_here()
                    held.queue.settle(live.request.id)
                    held.report(live, result)
        except HolderLeft:
            return
        except BaseException as problem:
            with held.changed:
                held.close(problem)

    def _next(self) -> LiveRequest | None:
        """Return the next request, or None once the holder leaves."""
        held = self._held
        with held.changed:
            while not held.is_leaving:
                if not held.is_past_last() and (request := held.queue.take()) is not None:
                    return held.live[request.id]
                held.changed.wait()
        return None

    def reading(self, live: LiveRequest, reading: Mapping[str, object]) -> None:
        """Record and report how the request was understood."""
        with self._held.changed:
            self._held.require_here()
            self._held.log.reading(live.request.id, reading)
            live.emit("reading", seq=self.state.seq, reading=reading)

    def translating(self, live: LiveRequest, thread: ThreadId) -> None:
        """Record the thread in which a model is asked; a cancelled request kills it."""
        held = self._held
        with held.changed:
            held.require_here()
            held.log.translation(live.request.id, thread)
            live.translation = thread
            is_cancelled = live.open.cancelled
            live.emit("translating", threadId=thread)
        if is_cancelled:
            kill(held.engine, thread)

    def ask(self, live: LiveRequest, question: Mapping[str, object]) -> Mapping[str, object]:
        """Ask the person and wait for the answer."""
        held = self._held
        with held.changed:
            held.require_here()
            self._put(live, question)
            held.changed.wait_for(lambda: not live.listeners or self._is_over(live))
            self._close_question(live)
            if live.open.cancelled:
                raise RefusedError("cancelled")
            if not isinstance(live.answer, Mapping):
                raise RefusedError(
                    "it needs an answer, and no client is connected that could give one; nothing was run"
                )
            held.log.answer(live.request.id, live.answer)
            return live.answer

    def ask_thread(
        self, live: LiveRequest, question: Mapping[str, object], has_changed: Callable[[], bool]
    ) -> Mapping[str, object] | None:
        """Put the question of the request's waiting thread, once, and wait for the answer; None if
        the thread has changed, or the request was cancelled.
        """
        held = self._held
        with held.changed:
            held.require_here()
            self._put(live, question)
            for other in held.live.values():
                for listener in tuple(other.listeners):
                    held.report_block(other, listener)
            while not self._is_over(live) and not has_changed():
                held.changed.wait(POLL_S)
            self._close_question(live)
            if live.open.cancelled or not isinstance(live.answer, Mapping):
                return None
            return live.answer

    def answer_thread(self, run: Callable[[], object]) -> None:
        """Answer the thread by *run*, which starts its worker."""
        with self._held.starting():
            run()

    def answered(self, live: LiveRequest, answer: Mapping[str, object]) -> None:
        """Record and report that the thread's question has an answer."""
        with self._held.changed:
            self._held.require_here()
            asked = live.open.question or {}
            self._held.log.answer(live.request.id, answer)
            self._held.log.flush()
            live.emit("answered", seq=self.state.seq, threadId=asked.get("threadId"))

    def _put(self, live: LiveRequest, question: Mapping[str, object]) -> None:
        """Record and report a question, unless a former holder did."""
        held = self._held
        if live.open.question != question:
            held.log.question(live.request.id, question)
            held.log.flush()
        live.question, live.answer = live.open.question_seq, UNANSWERED
        held.changed.notify_all()
        held.queue.ask(live.request.id, live.question)
        shown = any(
            event["event"] == "question" and event["seq"] == live.question for event in live.events
        )
        if not shown:
            live.emit("question", seq=live.question, question=question)

    def _is_over(self, live: LiveRequest) -> bool:
        """Whether there is nothing to wait for: an answer came, or none is wanted any more."""
        return self._held.is_leaving or live.open.cancelled or live.answer is not UNANSWERED

    def _close_question(self, live: LiveRequest) -> None:
        self._held.require_here()
        live.question = 0
        self._held.queue.go_on(live.request.id)

    def start(
        self, live: LiveRequest, call: Call, thread: ThreadId, run: Callable[[], None]
    ) -> None:
        """Record the thread, then start it by *run*."""
        held = self._held
        with held.starting():
            with held.changed:
                if live.open.cancelled and live.open.thread is None:
                    raise RefusedError("cancelled")
                if live.open.thread is None:
                    held.log.thread(live.request.id, thread, call.document())
            run()
        with held.changed:
            live.has_started = True
            is_cancelled = live.open.cancelled
            live.emit("thread", seq=live.open.thread_seq, threadId=thread, flow=call.flow)
        if is_cancelled:
            kill(held.engine, thread)
