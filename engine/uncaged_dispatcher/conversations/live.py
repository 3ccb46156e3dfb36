"""Request as the process that drives it knows it: its events, their listeners, its open question.

An event is a JSON object with the event's kind and the request's id:

    accepted   position, ahead        in the queue; what runs before it
    reading    seq, reading           understood as calls
    question   seq, question          the person must answer
    thread     seq, threadId, flow    started
    answered   seq, threadId          the thread's question has an answer; the thread goes on
    blocked    of, seq, question,     a request before it waits for this answer, and whether a
               attended               client of that request can give it
    result     seq, result, next      settled; the ids of the requests that its result made
    problem    message                its thread could not be killed; a cancel tries it again
    left                              the holder ends; another one takes over

`seq` is the number of the event's record in the log: a client that changes to another holder skips
what it has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass
from uncaged_engine.door.preparing import RunOptions
from uncaged_engine.services.launching import Launching

from .records import OpenRequest
from .requests import ConversationRequest

RequestEvent = Mapping[str, Any]
Listener = Callable[[RequestEvent], None]
UNANSWERED = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What a client passes for its request and what is never written to disk.

    environment: for the child processes of the request's threads; None is the holder's own.
    attended: a person follows on a terminal. launching: a worker that is starting already, for
    the first thread.
    """

    environment: Mapping[str, str] | None = None
    attended: bool = False
    launching: Launching | None = None

    def options(self, directory: str) -> RunOptions:
        """Return the options of a thread that is started for the client."""
        if self.environment is None:
            return RunOptions(directory=Path(directory), attended=self.attended)
        return RunOptions(
            directory=Path(directory), attended=self.attended, environment=self.environment
        )


NO_CALLER = Caller()


class LiveRequest:
    """One request that is not settled. Its fields are read and written under the holder's lock."""

    def __init__(self, open_request: OpenRequest, caller: Caller = NO_CALLER) -> None:
        self.open = open_request
        self.caller = caller
        self.listeners: list[Listener] = []
        self.events: list[RequestEvent] = []
        self.question = 0
        """The number of the open question's record; 0 if there is none."""
        self.answer: object = UNANSWERED
        self.has_started = False
        """Whether its thread exists, so that a cancel can kill it."""
        self.is_unkilled = False
        """Whether the kill of its thread failed."""
        self.translation: ThreadId | None = None
        """The thread in which a model is asked what the sentence means."""
        if open_request.reading is not None:  # a former holder understood it
            self.emit("reading", seq=open_request.reading_seq, reading=open_request.reading)

    @property
    def request(self) -> ConversationRequest:
        """Return the request itself."""
        return self.open.request

    @property
    def thread(self) -> ThreadId | None:
        """Return the id of its thread, which may not exist yet."""
        recorded = self.open.thread
        return None if recorded is None else ThreadId(str(recorded.get("threadId")))

    def listen(self, listener: Listener) -> None:
        """Add a listener and give it the events so far."""
        self.listeners.append(listener)
        for event in self.events:
            give(listener, event)

    def emit(self, kind: str, **fields: object) -> None:
        """Give an event to all listeners, present and later ones."""
        event = {"event": kind, "id": self.request.id, **fields}
        self.events.append(event)
        for listener in tuple(self.listeners):
            give(listener, event)


def give(listener: Listener, event: RequestEvent) -> None:
    """Call a listener."""
    # a listener's bug must not end the request
    with suppress(Exception):
        listener(event)
