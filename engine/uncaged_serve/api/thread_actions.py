"""Actions on one thread: pause, resume, kill, answer, fork, verify."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field
from uncaged_bundles.errors import RefusedError
from uncaged_engine.api import Cut, Engine, RunOptions, ThreadView
from uncaged_engine.services.documents import answer_after, lean_view
from uncaged_engine.services.journal import JournalBusy
from uncaged_engine.services.threads import question_number

from .endpoints import ApiDocument, ApiEndpoint, Asked, ConflictError, Fields

BUSY_S = 10.0
PAUSE_S = 0.02


class NothingAsked(Fields):
    """An empty body."""


class LimitsBody(Fields):
    """Limits of a thread, by their names in a journal; None leaves one as it is."""

    max_rounds: int | None = Field(default=None, ge=1)
    max_steps: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)

    def limits(self) -> dict[str, Any]:
        """Return the limits by their names in `RunOptions`."""
        return {name: getattr(self, name) for name in LimitsBody.model_fields}


class ResumeBody(LimitsBody):
    """decision: about an effect that may have been performed. accept: of an imported thread, what
    it uses on this machine.
    """

    note: str | None = None
    decision: Literal["redo", "skip"] | None = None
    accept: bool = False


class AnswerBody(Fields):
    """question: the number of the question's record, as the thread's document has it."""

    value: Any
    question: int | None = Field(default=None, ge=1)


class ForkBody(LimitsBody):
    """at: how many steps are kept; None: all but the last. on: another version. start: False leaves
    the fork paused.
    """

    at: int | None = Field(default=None, ge=0)
    on: str | None = None
    start: bool = True
    accept: bool = False


class ActedDocument(ApiDocument):
    thread_id: str


class VerificationDocument(ApiDocument):
    thread_id: str
    ok: bool
    steps: int
    sandbox: str
    message: str
    kept_aside: str | None


def paused(engine: Engine, asked: Asked) -> object:
    return {"threadId": engine.pause(_thread(engine, asked))}


def killed(engine: Engine, asked: Asked) -> object:
    return {"threadId": engine.kill(_thread(engine, asked))}


def resumed(engine: Engine, asked: Asked) -> object:
    body: ResumeBody = asked.body
    thread = _thread(engine, asked)
    consent = ImportConsent(accepted=body.accept)
    consent.ask(
        lambda: engine.resume(
            thread,
            redo=body.decision == "redo",
            skip=body.decision == "skip",
            note=body.note,
            options=RunOptions(**body.limits()),
            accept=consent,
        )
    )
    return {"threadId": thread}


def forked(engine: Engine, asked: Asked) -> object:
    body: ForkBody = asked.body
    thread = _thread(engine, asked)
    consent = ImportConsent(accepted=body.accept)
    made = consent.ask(
        lambda: engine.fork(
            thread,
            cut=Cut(at=body.at),
            on=body.on or None,
            options=RunOptions(**body.limits()),
            start=body.start,
            accept=consent,
        )
    )
    return {"threadId": made}


def answered(engine: Engine, asked: Asked) -> object:
    """Record the answer of a question. Of two answers the first that takes the journal's lock
    counts; the other one is refused with it.
    """
    body: AnswerBody = asked.body
    thread = _thread(engine, asked)
    at = body.question or question_number(_view(engine, thread).records)
    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            return {"threadId": engine.answer(thread, body.value, question=at)}
        except RefusedError as exc:
            found = _view(engine, thread)
            counts = answer_after(found.records, at) if at else None
            if counts is not None:
                document = {"value": counts.get("value"), "timestamp": counts.get("timestamp")}
                raise ConflictError(
                    f"thread {thread} was answered already", {"answer": document}
                ) from exc
            # another answer is being written, or a worker is leaving; either one holds the lock
            still_asks = bool(at) and len(found.records) == at and not found.unbound
            if not (isinstance(exc, JournalBusy) or still_asks) or time.monotonic() >= deadline:
                raise
        time.sleep(PAUSE_S)


def verified(engine: Engine, asked: Asked) -> object:
    thread = _thread(engine, asked)
    found = engine.verify(thread)
    return {
        "threadId": thread,
        "ok": found.ok,
        "steps": found.steps,
        "sandbox": found.mechanism,
        "message": found.message,
        "keptAside": str(found.kept_aside) if found.kept_aside else None,
    }


class ImportConsent:
    """Consent of a person to what an imported thread would use here. Without it, the request is
    refused with the list.
    """

    def __init__(self, *, accepted: bool) -> None:
        self._accepted = accepted
        self._asked: tuple[str, ...] = ()

    def __call__(self, sentences: tuple[str, ...]) -> bool:
        self._asked = sentences
        return self._accepted

    def ask(self, act: Callable[[], str]) -> str:
        """Return what *act* returns.

        Raises:
            ConflictError: it was refused because something must be accepted; the document has it.
        """
        try:
            return act()
        except RefusedError as exc:
            if self._asked and not self._accepted:
                raise ConflictError(str(exc), {"accept": list(self._asked)}) from exc
            raise


def _thread(engine: Engine, asked: Asked) -> str:
    return engine.store.locate_thread(asked.path["id"])[1]


def _view(engine: Engine, thread: str) -> ThreadView:
    return lean_view(engine.store, engine.store.locate_thread(thread))


ENDPOINTS = (
    ApiEndpoint(
        method="POST",
        path="/api/threads/{id}/pause",
        summary="Pause a thread before its next effect",
        handler=paused,
        body=NothingAsked,
        answer=ActedDocument,
    ),
    ApiEndpoint(
        method="POST",
        path="/api/threads/{id}/kill",
        summary="End a thread and its effect in flight",
        handler=killed,
        body=NothingAsked,
        answer=ActedDocument,
    ),
    ApiEndpoint(
        method="POST",
        path="/api/threads/{id}/resume",
        summary="Continue a thread, with higher limits if some are given",
        handler=resumed,
        body=ResumeBody,
        answer=ActedDocument,
    ),
    ApiEndpoint(
        method="POST",
        path="/api/threads/{id}/answer",
        summary="Answer the question that a thread waits for; the first answer counts",
        handler=answered,
        body=AnswerBody,
        answer=ActedDocument,
    ),
    ApiEndpoint(
        method="POST",
        path="/api/threads/{id}/fork",
        summary="Start a thread from the first steps of another",
        handler=forked,
        body=ForkBody,
        answer=ActedDocument,
    ),
    ApiEndpoint(
        method="POST",
        path="/api/threads/{id}/verify",
        summary="Replay a thread over its journal",
        handler=verified,
        body=NothingAsked,
        answer=VerificationDocument,
    ),
)
