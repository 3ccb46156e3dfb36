"""Thread of execution of a holder: takes the queue's requests one at a time and executes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId

from ..calls import Call
from .execution import Interpret, execute, kill
from .held import HeldConversation, HolderLeft
from .live import UNANSWERED, LiveRequest
from .records import ConversationState


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
        """Note the thread in which a model is asked; a cancelled request kills it."""
        with self._held.changed:
            live.translation = thread
            is_cancelled = live.open.cancelled
            live.emit("translating", threadId=thread)
        if is_cancelled:
            kill(self._held.engine, thread)

    def ask(self, live: LiveRequest, question: Mapping[str, object]) -> Mapping[str, object]:
        """Ask the person and wait for the answer."""
        held = self._held
        with held.changed:
            held.require_here()
            held.log.question(live.request.id, question)
            live.question, live.answer = self.state.seq, UNANSWERED
            live.emit("question", seq=live.question, question=question)
            held.changed.wait_for(
                lambda: (
                    held.is_leaving
                    or live.open.cancelled
                    or not live.listeners
                    or live.answer is not UNANSWERED
                )
            )
            held.require_here()
            live.question = 0
            if live.open.cancelled:
                raise RefusedError("cancelled")
            if not isinstance(live.answer, Mapping):
                raise RefusedError(
                    "it needs an answer, and no client is connected that could give one; nothing was run"
                )
            held.log.answer(live.request.id, live.answer)
            return live.answer

    def start(
        self, live: LiveRequest, call: Call, thread: ThreadId, run: Callable[[], None]
    ) -> None:
        """Record the thread, then start it by *run*."""
        held = self._held
        with held.changed:
            held.require_here()
            if live.open.cancelled and live.open.thread is None:
                raise RefusedError("cancelled")
            if live.open.thread is None:
                held.log.thread(live.request.id, thread, call.document())
            # a holder that left now would start the thread beside the next holder
            held.is_starting = True
        try:
            run()
        finally:
            with held.changed:
                held.is_starting = False
                held.changed.notify_all()
        with held.changed:
            live.has_started = True
            is_cancelled = live.open.cancelled
            live.emit("thread", seq=live.open.thread_seq, threadId=thread, flow=call.flow)
        if is_cancelled:
            kill(held.engine, thread)
