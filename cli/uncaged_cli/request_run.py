"""Run of one request of a conversation: prints what was understood, asks the person, and follows
the thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncaged_bundles.clean import clean_line
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass

from .capture_proposal import propose_capture
from .display import json_output
from .display.output import PROGRAM, Styled, next_step, note
from .display.sentences import show_miss, show_result, understood
from .display.started import follow_or_print
from .entry import EXIT_INTERRUPTED
from .inputs.answers import can_ask, respond
from .inputs.consent import is_attended
from .runtime import now_ms

if TYPE_CHECKING:
    from uncaged_dispatcher.conversations.live import RequestEvent
    from uncaged_dispatcher.conversations.requests import ConversationRequest
    from uncaged_dispatcher.conversations.sessions import ConversationSession
    from uncaged_engine.api import Engine
    from uncaged_engine.worker.client import Launching

    from .display.plain import FollowView

EXIT_WAITING = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome:
    """Exit code of a request's thread, or of the first that failed among those that its result
    made; and the words of the verb that the sentence means, which the caller runs.
    """

    exit_code: int
    verb: tuple[str, ...] = ()


def new_request(**fields: Any) -> ConversationRequest:
    """Return a request of *fields* from the current directory.

    Raises:
        UsageError: its sentence has hidden characters, or too many.
    """
    from uncaged_dispatcher.conversations.requests import ConversationRequest
    from uncaged_dispatcher.conversations.sessions import new_request_id

    return ConversationRequest(id=new_request_id(now_ms()), directory=str(Path.cwd()), **fields)


def submit_request(
    engine: Engine,
    conversation: str | None,
    *,
    detach: bool,
    as_json: bool,
    verbose: bool,
    launching: Launching | None = None,
    **fields: Any,
) -> RequestOutcome:
    """Make a request of *fields* for a conversation, the current one without a name, and run it
    from the current directory; see `run_request`.
    """
    from uncaged_dispatcher.conversations.catalog import chosen_conversation
    from uncaged_dispatcher.conversations.reader import ConversationReader
    from uncaged_dispatcher.conversations.sessions import ConversationSession

    # checked before a conversation is made for it
    request = new_request(**fields)
    id = chosen_conversation(engine.store, conversation, now_ms())
    session = ConversationSession(engine, id, lambda: ConversationReader(engine, now_ms), now_ms)
    return run_request(
        engine,
        session,
        request,
        detach=detach,
        as_json=as_json,
        verbose=verbose,
        launching=launching,
    )


def run_request(
    engine: Engine,
    session: ConversationSession,
    request: ConversationRequest,
    *,
    detach: bool,
    as_json: bool,
    verbose: bool,
    launching: Launching | None = None,
) -> RequestOutcome:
    """Submit a request and follow it to its end, or with *detach* until its thread has started."""
    from uncaged_dispatcher.conversations.live import Caller

    caller = Caller(
        environment=dict(os.environ),
        attended=is_attended(detach=detach, as_json=as_json),
        launching=launching,
    )
    output = RequestOutput(engine, detach=detach, as_json=as_json, verbose=verbose)
    with launching or nullcontext(), closing(session.run(request, caller, respond)) as events:
        return output.show_all(events)


class RequestOutput:
    """Output about a request and those that its result makes."""

    def __init__(
        self,
        engine: Engine,
        *,
        detach: bool,
        as_json: bool,
        verbose: bool,
        view: FollowView | None = None,
    ) -> None:
        """Args: view: shows the steps of the threads; the default suits standard output."""
        self._codes: dict[str, int] = {}
        self._verb: list[str] = []
        self._engine, self._detach, self._as_json = engine, detach, as_json
        self._verbose, self._view = verbose, view
        self._children: set[str] = set()
        """Threads that asked, and that another thread started."""
        self._learning: dict[str, bool] = {}
        """Whether a request's directive asks for a flow of what its agent does, or forbids it."""
        self._captured: dict[ThreadId, bool] = {}
        """Threads with success, and whether a flow of each was asked for."""
        self._fields: dict[str, object] = {}
        """What the one document of a detached request has beside its thread."""

    def show_all(self, events: Iterable[RequestEvent]) -> RequestOutcome:
        """Print events up to the last one that is to be shown, and follow the threads."""
        for event in events:
            code = self._show(event)
            if code is not None:
                return RequestOutcome(exit_code=code)
        for thread, wanted in self._captured.items():
            # a question would need the shell's terminal
            propose_capture(self._engine, thread, wanted=wanted, asks=self._view is None)
        code = next((code for code in self._codes.values() if code), 0)
        # the verb may change this conversation, which is still in use
        return RequestOutcome(exit_code=code, verb=tuple(self._verb))

    def _show(self, event: RequestEvent) -> int | None:
        """Print an event; return the exit code if nothing after it is to be shown."""
        id = event["id"]
        if event["event"] == "reading" and "learn" in event["reading"]:
            self._learning[id] = event["reading"]["learn"]
        match event["event"]:
            case "accepted" if event["position"] and not self._as_json:
                ahead = event["position"]
                note(f"waiting for {ahead} request{'' if ahead == 1 else 's'} before this one")
            case "blocked":
                _show_block(event)
            case "problem":
                note(Styled("warning: ", "yellow"), clean_line(event["message"]))
            case "reading" if self._detach and self._as_json:
                self._fields = {"reading": event["reading"]}
            case "reading":
                _show_reading(event["reading"], as_json=self._as_json)
            case "thread" | "answered":
                return self._follow(id, event)
            case "question" if event["question"]["kind"] == "thread":
                return self._show_question(id, event["question"])
            case "result":
                return self._show_result(id, event["result"])
            case _:
                pass
        return None

    def _follow(self, id: str, event: Mapping[str, Any]) -> int | None:
        """Follow a thread that was started, or that goes on after an answer."""
        thread = ThreadId(event["threadId"])
        if thread in self._children:
            return None  # the thread that started it was followed all the time
        goes_on = event["event"] == "answered"
        self._codes[id] = follow_or_print(
            self._engine,
            thread,
            detach=self._detach,
            as_json=self._as_json,
            verbose=self._verbose,
            known_records=len(self._engine.thread(thread).records) if goes_on else 0,
            fields=self._fields,
            view=self._view,
        )
        stops = self._detach or self._codes[id] == EXIT_INTERRUPTED
        return self._codes[id] if stops else None

    def _show_question(self, id: str, question: Mapping[str, Any]) -> int | None:
        """Print the question of a thread as JSON; return the exit code if it cannot be asked."""
        if self._as_json:
            json_output.line({"event": "question", "question": question})
        if "parent" in question:
            self._children.add(question["threadId"])
            return None
        return None if can_ask() else self._codes.get(id, EXIT_WAITING)

    def _show_result(self, id: str, ended: Mapping[str, Any]) -> int | None:
        if ended["status"] == "verb":
            self._verb = _verb(ended["details"])
        elif self._detach and self._as_json:
            json_output.document({**self._fields, "result": ended})
            return int(ended["exitCode"])
        else:
            _show_result(ended, as_json=self._as_json, followed=id in self._codes)
            wanted = self._learning.get(id)
            if "threadId" in ended and wanted is not False and not self._as_json:
                self._captured[ThreadId(ended["threadId"])] = wanted is True
            self._codes.setdefault(id, int(ended["exitCode"]))
        return None


def _show_block(event: Mapping[str, Any]) -> None:
    """Print that an earlier request of the conversation waits for an answer.

    Raises:
        RefusedError: no client is there that could give it.
    """
    question = event["question"]
    text = f"an earlier request of this conversation waits for an answer: {clean_line(question['question'])}"
    answer = f"{PROGRAM} answer {question['threadId']} TEXT"
    if not event["attended"] and not can_ask():
        raise RefusedError(
            f"{text}; answer it by `{answer}`, or end it by `{PROGRAM} conversation cancel {event['of']}`; nothing was run"
        )
    note(text)
    if event["attended"]:
        next_step(answer)


def _verb(details: Mapping[str, Any]) -> list[str]:
    """Return the words of a verb that a sentence asks for; an argument is never an option."""
    arguments = [str(text) for text in details["arguments"]]
    return [*map(str, details["verb"]), *(["--", *arguments] if arguments else [])]


def _show_reading(reading: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        json_output.line({"event": "understood", "reading": reading})
    else:
        note(*understood(reading))


def _show_result(ended: Mapping[str, Any], *, as_json: bool, followed: bool) -> None:
    """Print a result. followed: the output of its thread was shown, with the thread's message."""
    if as_json:
        json_output.line({"event": "result", "result": ended})
        return
    if not followed:
        note(Styled("error: " if not ended["success"] else "", "red"), str(ended["message"]))
    if ended["status"] == "missed":
        show_miss(ended.get("details") or {})
    show_result(ended)
    sys.stdout.flush()
