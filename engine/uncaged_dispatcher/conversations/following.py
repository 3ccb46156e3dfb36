"""End of a request's thread: the wait for it, with the person's answers to its questions, the
result that it makes, and its kill.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from uncaged_bundles.errors import DamagedError, NotFoundError, RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, ThreadPlace
from uncaged_engine.services.threads import ThreadView, open_children

from ..calls import Call
from .live import LiveRequest
from .results import RequestResult, result_of_thread
from .thread_questions import is_answered, is_asked, recorded_answer, thread_question

CALLS = "calls"
"""The flow that runs several calls in order."""
EXIT_CANCELLED = 3
RESUME_AFTER_S = 2.0
"""An answered thread without a worker is resumed after this time: the process that answered starts
the worker itself, unless it died.
"""
PAUSE_S = 0.02
LOOK_S = 0.5
"""Time between two looks at the children of a thread that runs several calls."""


class QuestionLog(Protocol):
    """Side of the holder that puts the questions of threads."""

    def ask_thread(
        self, live: LiveRequest, question: Mapping[str, object], has_changed: Callable[[], bool]
    ) -> Mapping[str, object] | None:
        """Put the question of the request's waiting thread, once, and wait for the answer.

        Args:
            has_changed: whether the thread is no longer as it was when the question was read.
        Returns:
            `{"value": …}`; None if the thread has changed, or the request was cancelled.
        """

    def answer_thread(self, run: Callable[[], object]) -> None:
        """Answer the thread by *run*, which starts its worker."""

    def answered(self, live: LiveRequest, answer: Mapping[str, object]) -> None:
        """Record and report that the thread's question has an answer."""


def follow(engine: Engine, log: QuestionLog, live: LiveRequest) -> RequestResult:
    """Wait until the thread stops, and return what it made of the request."""
    _, thread = recorded(live)
    # crash here: the thread runs and is not followed; the next holder follows it
    view = _stopped(engine, log, live, thread)
    # not needed before the end, and a part of what a start would import
    from uncaged_engine.services.endings import ending_of

    ended = ending_of(view, engine.store, Path(live.request.directory))
    # crash here: the thread has ended, and its result is not in the log; the next holder records
    # it
    if live.open.cancelled and view.summary.status == "killed":
        return cancelled_result(thread, f"cancelled; its thread {thread} was killed")
    returned = (view.end or {}).get("result")
    return result_of_thread(thread, view.summary.status, ended.message, ended.exit_code, returned)


def _stopped(engine: Engine, log: QuestionLog, live: LiveRequest, thread: ThreadId) -> ThreadView:
    """Wait until the thread stops, and not for an answer; put its questions meanwhile."""
    resumed = -1
    while True:
        place = engine.store.locate_thread(thread)
        asked = live.open.question
        if asked is None or asked.get("threadId") != thread:
            asked = None
            _wait(engine, log, live, thread)
        has_changed = _changes(engine, place, lambda: False)
        view = engine.thread(thread)
        status = view.summary.status
        if asked is not None and not is_asked(view, asked):
            # crash here: the thread has the answer, and the log has not; the next holder records it
            log.answered(live, recorded_answer(view))
        elif status == "running":  # without an answer: it will ask the same again
            engine.wait_until_left(place)
        elif status == "waiting" and live.open.cancelled:
            kill(engine, thread)
        elif status == "waiting":
            _ask(engine, log, live, view, has_changed)
        elif (
            status == "interrupted"
            and not view.copied
            and is_answered(view)
            and len(view.records) > resumed
        ):
            resumed = len(view.records)
            _resume_answered(engine, live, place)
        else:
            return view


def _wait(engine: Engine, log: QuestionLog, live: LiveRequest, thread: ThreadId) -> None:
    """Wait until no worker drives the thread. Of one that runs several calls, put the questions of
    the children meanwhile: it waits for them by itself.
    """
    place = engine.store.locate_thread(thread)
    next_look = time.monotonic()
    pause_s = LOOK_S if engine.is_shared else PAUSE_S
    while recorded(live)[0].flow == CALLS and engine.is_driven(place) and not live.open.cancelled:
        child = None
        if time.monotonic() >= next_look:
            next_look = time.monotonic() + LOOK_S
            child = _waiting_child(engine, log, live, thread)
        if child is None:
            time.sleep(pause_s)
            continue
        of_child = engine.store.locate_thread(child.summary.thread_id)
        has_changed = _changes(engine, of_child, lambda: not engine.is_driven(place))
        _ask(engine, log, live, child, has_changed)
    engine.wait_until_left(place)
    if live.open.question is not None:
        _waiting_child(engine, log, live, thread)


def _waiting_child(
    engine: Engine, log: QuestionLog, live: LiveRequest, thread: ThreadId
) -> ThreadView | None:
    """Return the child of a thread that waits for an answer. If the last one that asked has got it,
    record that first.
    """
    asked = live.open.question
    if asked is not None:
        child = engine.thread(asked["threadId"])
        if is_asked(child, asked):
            return child
        log.answered(live, recorded_answer(child))
    for id in open_children(engine.store, thread, engine.thread(thread).records):
        if engine.has_thread(id):
            child = engine.thread(id)
            if child.summary.status == "waiting":
                return child
    return None


def _changes(engine: Engine, place: ThreadPlace, or_else: Callable[[], bool]) -> Callable[[], bool]:
    """Return a function that tells whether a journal has changed since this call."""
    size = engine.journal_size(place)
    return lambda: engine.journal_size(place) != size or or_else()


def _ask(
    engine: Engine,
    log: QuestionLog,
    live: LiveRequest,
    view: ThreadView,
    has_changed: Callable[[], bool],
) -> None:
    """Put a waiting thread's question, and give the thread the answer."""
    thread = view.summary.thread_id
    found = log.ask_thread(live, thread_question(view), has_changed)
    if found is None:
        return
    options = live.caller.options(live.request.directory)
    # another process answered first; its answer counts
    with suppress(RefusedError):
        log.answer_thread(lambda: engine.answer(thread, found["value"], options=options))


def _resume_answered(engine: Engine, live: LiveRequest, place: ThreadPlace) -> None:
    """Resume a thread whose answer is recorded, unless the process that answered does it."""
    until = time.monotonic() + RESUME_AFTER_S
    while time.monotonic() < until:
        if engine.is_driven(place):
            return
        time.sleep(LOOK_S if engine.is_shared else PAUSE_S)
    with suppress(RefusedError):
        engine.resume(place[1], options=live.caller.options(live.request.directory))


def recorded(live: LiveRequest) -> tuple[Call, ThreadId]:
    """Return the call and the thread that the log has for a request."""
    match live.open.thread:
        case {"threadId": str(thread), "flow": str(flow), **rest}:
            return Call.read({"flow": flow, "params": rest.get("params")}), ThreadId(thread)
        case other:
            raise DamagedError(f"request {live.request.id}: {other!r} is no thread")


def cancelled_result(thread: str | None = None, message: str = "cancelled") -> RequestResult:
    """Return the result of a request that was cancelled."""
    return RequestResult(
        status="cancelled", success=False, message=message, exit_code=EXIT_CANCELLED, thread=thread
    )


def kill(engine: Engine, thread: str) -> None:
    """Kill the thread unless it has ended or was removed."""
    try:
        engine.kill(thread)
    except (RefusedError, NotFoundError):
        return
