"""Execution of one request: from its reading to the end of its thread.

The thread's id is recorded before the thread is started. Whatever kills the holder, the next one
finds by the log and the thread's journal how far it was: no thread (it starts it), a thread without
a worker (it resumes it), one that runs (it follows it), one that ended (it records the result).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from uncaged_bundles.errors import NotFoundError, RefusedError, UncagedError
from uncaged_bundles.ids import ThreadId, new_thread_id
from uncaged_bundles.limits import FlowLimits
from uncaged_engine.api import Engine

from ..calls import Call, Interpretation, Miss, Question
from ..packs.verbs import HELP, verb_words
from .following import CALLS, QuestionLog, cancelled_result, follow, recorded
from .live import Caller, LiveRequest
from .records import ConversationState
from .requests import ConversationRequest
from .results import RequestResult

ENTROPY_BYTES = 10
EXIT_MISS = NotFoundError.exit_code


class Interpret(Protocol):
    """Reader of sentences; `uncaged_dispatcher.readings` has it."""

    def __call__(
        self, request: ConversationRequest, state: ConversationState
    ) -> Interpretation | Question | Miss:
        """Read the request's sentence in the conversation."""

    def translate(
        self,
        request: ConversationRequest,
        state: ConversationState,
        missed: Miss,
        *,
        clarified: Sequence[Mapping[str, object]],
        caller: Caller,
        on_start: Callable[[ThreadId], None],
    ) -> Interpretation | Question | Miss:
        """Ask a model what a sentence means that no rule reads. clarified: its questions so far
        with their answers. on_start: called with the thread in which it is asked.
        """

    def learn(self, sentence: str, call: Call, thread: str) -> None:
        """Learn from a call of a model's translation that ran well."""

    def needs_consent(self, flow: str) -> bool:
        """Whether a person marked the flow as one that is confirmed before it runs."""

    def chosen(
        self, question: Question, choice: str, *, remember: bool
    ) -> Interpretation | Question:
        """Return the reading that the person chose, or the next question about it."""


class ExecutionLog(QuestionLog, Protocol):
    """Side of the holder that an execution writes to."""

    @property
    def state(self) -> ConversationState:
        """Return what the log adds up to."""

    def translating(self, live: LiveRequest, thread: ThreadId) -> None:
        """Note the thread in which a model is asked; a cancelled request kills it."""

    def reading(self, live: LiveRequest, reading: Mapping[str, object]) -> None:
        """Record and report how the request was understood."""

    def ask(self, live: LiveRequest, question: Mapping[str, object]) -> Mapping[str, object]:
        """Ask the person and wait for the answer.

        Raises:
            RefusedError: no client is there to answer, or the request was cancelled.
        """

    def start(
        self, live: LiveRequest, call: Call, thread: ThreadId, run: Callable[[], None]
    ) -> None:
        """Record the thread, then start it by *run*."""


def execute(
    engine: Engine, interpret: Interpret, log: ExecutionLog, live: LiveRequest, now_ms: int
) -> RequestResult:
    """Bring a request to its end and return its result."""
    try:
        if live.open.thread is not None:
            _take_up(engine, log, live)
        elif live.open.cancelled:
            return cancelled_result()
        else:
            found = _call(engine, interpret, log, live)
            if isinstance(found, RequestResult):
                return found
            thread = new_thread_id(now_ms, os.urandom(ENTROPY_BYTES))
            _start(engine, log, live, found, thread)
        result = follow(engine, log, live)
        _learn(interpret, live, result)
        return result
    except UncagedError as problem:
        if live.open.cancelled and not live.has_started:
            return cancelled_result()
        left = live.thread
        # a worker that could not start leaves its thread behind
        exists = left is not None and engine.has_thread(left)
        return RequestResult.failed(problem, thread=left if exists else None)


def _call(
    engine: Engine, interpret: Interpret, log: ExecutionLog, live: LiveRequest
) -> Call | RequestResult:
    """Return the call that the request asks for, with the person's consent where that is
    needed.
    """
    request = live.request
    unread = request.unread_call
    if unread is not None:
        calls: tuple[Call, ...] = (unread,)
        reading: dict[str, object] = {"calls": [unread.document()], "by": "call"}
        marked = _marked(interpret, calls)
        is_certain = request.parent is None or _may_follow(engine, log, request)
    else:
        found = _understood(interpret, log, live)
        if live.open.cancelled:
            return cancelled_result()
        if isinstance(found, Miss):
            return RequestResult(
                status="missed",
                success=False,
                message=found.why,
                exit_code=EXIT_MISS,
                details=found.document(),
            )
        if found.by == "verb":
            log.reading(live, found.document())
            return _verb_result(engine, found.calls[0])
        calls, reading = found.calls, found.document()
        marked, is_certain = found.confirm, found.by != "model"
    directive = request.directed.directive
    if directive is not None:
        reading = {**reading, "learn": directive == "learn"}
    log.reading(live, reading)
    if (marked or not is_certain) and not request.agreed:
        calls = _confirmed(log, live, calls, marked)
    if len(calls) == 1:
        return calls[0]
    return Call(flow=CALLS, params={"calls": [_entry(engine, call) for call in calls]})


def _entry(engine: Engine, call: Call) -> dict[str, object]:
    """Return a call for the flow that runs several, with the parameters that take data."""
    declared = engine.bundle(call.flow).descriptor.parameters.get("properties")
    data = [
        name
        for name, part in (declared.items() if isinstance(declared, Mapping) else ())
        if isinstance(part, Mapping) and part.get("type") in ("array", "object")
    ]
    return {**call.document(), **({"data": data} if data else {})}


def _understood(
    interpret: Interpret, log: ExecutionLog, live: LiveRequest
) -> Interpretation | Miss:
    """Read the request's sentence: by the rules, else by a model, with the person's answers."""
    request, clarified = live.request, list[Mapping[str, object]]()

    def translated(missed: Miss) -> Interpretation | Question | Miss:
        return interpret.translate(
            request,
            log.state,
            missed,
            clarified=clarified,
            caller=live.caller,
            on_start=lambda thread: log.translating(live, thread),
        )

    found = interpret(request, log.state)
    missed = found if isinstance(found, Miss) else Miss(sentence=request.directed.sentence, why="")
    if isinstance(found, Miss) and request.model:
        found = translated(missed)
    while isinstance(found, Question):
        answer = log.ask(live, found.document())
        choice = str(answer.get("choice"))
        if found.kind == "clarification":
            clarified.append({"question": found.text, "answer": found.choice(choice).label})
            found = translated(missed)
        else:
            remember = answer.get("remember") is True
            found = interpret.chosen(found, choice, remember=remember)
    return found


def _learn(interpret: Interpret, live: LiveRequest, result: RequestResult) -> None:
    """Learn from a request that a model translated into one call, and that succeeded."""
    match live.open.reading:
        case {"by": "model", "calls": [call]} if result.success and result.thread is not None:
            ran, _ = recorded(live)
            directive, sentence = live.request.directed.directive, live.request.directed.sentence
            # a person changed nothing, and did not forbid it
            if ran.document() == call and directive is None:
                interpret.learn(sentence, ran, result.thread)


def _verb_result(engine: Engine, call: Call) -> RequestResult:
    """Return the overview of sentences, or the words of a verb, which the client runs."""
    if call.flow == HELP:
        from ..readings.overview import overview

        return RequestResult(
            status="completed",
            success=True,
            message="sentences that this store reads, by pack",
            display=overview(engine),
        )
    verb, arguments = verb_words(call)
    return RequestResult(
        status="verb",
        success=True,
        message=shlex.join([*verb, *arguments]),
        details={"verb": verb, "arguments": arguments},
    )


def _marked(interpret: Interpret, calls: tuple[Call, ...]) -> tuple[str, ...]:
    return tuple(call.flow for call in calls if interpret.needs_consent(call.flow))


def _may_follow(engine: Engine, log: ExecutionLog, request: ConversationRequest) -> bool:
    """Whether the bundle whose result made this call may start that flow: its granted policy names
    it. Otherwise the person is asked, or a result would do what its flow may not.
    """
    exchange = log.state.exchange(str(request.parent))
    if exchange is None or exchange.result.thread is None or request.call is None:
        return False
    bundle = engine.bundle(engine.thread(exchange.result.thread).summary.hash)
    limits = bundle.descriptor.policy.limits.get("flow")
    if limits is None:
        return False
    names = FlowLimits.of(limits).names
    return names is None or request.call.flow in names


def _confirmed(
    log: ExecutionLog, live: LiveRequest, calls: tuple[Call, ...], marked: tuple[str, ...]
) -> tuple[Call, ...]:
    """Return the calls that the person agreed to run, perhaps edited."""
    question = {
        "kind": "confirm",
        "question": f"Run {', '.join(dict.fromkeys(call.flow for call in calls))}?",
        "calls": [call.document() for call in calls],
        "marked": list(marked),
    }
    answer = log.ask(live, question)
    match answer:
        case {"run": True}:
            return calls
        case {"calls": list(edited)} if edited:
            return tuple(map(Call.read, edited))
        case _:
            raise RefusedError("the answer was no; nothing was run")


def _start(
    engine: Engine, log: ExecutionLog, live: LiveRequest, call: Call, thread: ThreadId
) -> None:
    def run() -> None:
        # crash here: the thread's id is in the log, and there is no thread; the next holder starts
        # it
        engine.run(
            call.flow,
            prompt=live.request.directed.sentence,
            params=call.params,
            options=live.caller.options(live.request.directory),
            thread=thread,
            launching=live.caller.launching if live.request.parent is None else None,
        )

    log.start(live, call, thread, run)


def _take_up(engine: Engine, log: ExecutionLog, live: LiveRequest) -> None:
    """Continue with the thread of a former holder."""
    call, thread = recorded(live)
    if not engine.has_thread(thread):
        if engine.store.was_removed(thread):
            raise NotFoundError(f"the request's thread {thread} was removed before it had ended")
        if live.open.cancelled:
            raise RefusedError("cancelled before its thread was started")
        _start(engine, log, live, call, thread)
        return

    def resume() -> None:
        found = engine.thread(thread)
        if live.open.cancelled or found.copied or found.summary.status != "interrupted":
            return
        # another process resumed it meanwhile, or it needs a decision; its status says which
        with suppress(RefusedError):
            engine.resume(thread, options=live.caller.options(live.request.directory))

    # a cancel that comes meanwhile kills the thread after it was resumed: a killed one can be
    # resumed, too
    log.start(live, call, thread, resume)
