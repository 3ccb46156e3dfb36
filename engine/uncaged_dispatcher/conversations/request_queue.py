"""Queue of a conversation's requests, as a pure state machine: it reads no clock and does no I/O.

    event        queued                running                      unknown id
    take         the first: running    (one at a time: none)
    ask                                waiting
    go_on                              running, if it was waiting
    settle                             gone
    cancel       gone                  cancelling (once)            not_found
    promote      first in the queue    false                        false
    interrupt                          cancelling, new one first
    drain        stays, may be taken   stays; submits are refused
    expire       gone (rejected)       stays

Each change makes a snapshot with a higher version and shows it to the observers. A request that
left the queue never comes back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from uncaged_bundles.records import dataclass

from .requests import ConversationRequest

MAX_QUEUED = 100
DRAIN_TIMEOUT_MS = 30_000

RequestState = Literal["queued", "running", "waiting", "cancelling"]
CancelResult = Literal["cancelled_queued", "cancelled_running", "not_found"]
RefusalReason = Literal["queue_full", "server_stopping", "duplicate_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """One request in a snapshot. position: 0 for the running one, from 1 in the queue. question:
    the number of the question's record for which it is waiting.
    """

    request: ConversationRequest
    state: RequestState
    position: int
    question: int = 0

    def document(self) -> dict[str, object]:
        """Return the entry as JSON, without the request's options."""
        request = self.request
        return {
            "id": request.id,
            **({"clientId": request.client_id} if request.client_id is not None else {}),
            **({"call": request.call.document()} if request.call else {"text": request.text}),
            "state": self.state,
            "position": self.position,
            **({"question": self.question} if self.question else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSnapshot:
    """The queue after one change."""

    version: int
    running: QueueEntry | None
    queued: tuple[QueueEntry, ...]
    stopping: bool

    def document(self) -> dict[str, object]:
        """Return the snapshot as JSON."""
        return {
            "version": self.version,
            "running": None if self.running is None else self.running.document(),
            "queued": [entry.document() for entry in self.queued],
            "stopping": self.stopping,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRefusal:
    """Reason why a request was not accepted. maximum: the limit that was reached, if it is one."""

    reason: RefusalReason
    maximum: int | None = None

    def document(self) -> dict[str, object]:
        """Return the answer to the submit as JSON."""
        more = {} if self.maximum is None else {"maximum": self.maximum}
        return {"ok": False, "error": self.reason, **more}


class RequestQueue:
    """The queue. Its caller serialises the calls."""

    def __init__(self, queued: Iterable[ConversationRequest] = ()) -> None:
        self._queued = list(queued)
        self._running: ConversationRequest | None = None
        self._is_cancelling = False
        self._question = 0
        self._stop_at_ms: int | None = None
        self._version = 0
        self._observers: list[Callable[[QueueSnapshot], None]] = []

    def submit(self, request: ConversationRequest, *, first: bool = False) -> SubmitRefusal | None:
        """Add a request at the end, or with *first* before all others; None if it was accepted."""
        refusal = self.refusal(request)
        if refusal is None:
            self._queued.insert(0 if first else len(self._queued), request)
            self._changed()
        return refusal

    def refusal(self, request: ConversationRequest) -> SubmitRefusal | None:
        """Return why a request would not be accepted now, or None."""
        if self.is_stopping:
            return SubmitRefusal(reason="server_stopping")
        names = {request.id, request.client_id} - {None}
        if any(self.find(str(name)) for name in names):
            return SubmitRefusal(reason="duplicate_id")
        if not self.has_room:
            return SubmitRefusal(reason="queue_full", maximum=MAX_QUEUED)
        return None

    def interrupt(self, request: ConversationRequest) -> tuple[SubmitRefusal | None, str | None]:
        """Add a request before all others and cancel the running one.

        Returns:
            Why it was refused, or None; and the id of the request that must be ended now, or None
            if none runs or it is cancelled already.
        """
        refusal = self.refusal(request)
        if refusal is not None:
            return refusal, None
        self._queued.insert(0, request)
        cancelled = self._cancel_running()
        self._changed()
        return None, cancelled

    def promote(self, text: str) -> bool:
        """Move a queued request to the front; False if it runs or is unknown."""
        request = self._find_queued(text)
        if request is None:
            return False
        self._queued.remove(request)
        self._queued.insert(0, request)
        self._changed()
        return True

    def cancel(self, text: str) -> CancelResult:
        """Cancel a request by its id or by the client's id. A second cancel of the running one
        changes nothing.
        """
        request = self._find_queued(text)
        if request is not None:
            self._queued.remove(request)
            self._changed()
            return "cancelled_queued"
        if self._running is None or not _is_named(self._running, text):
            return "not_found"
        if self._cancel_running() is not None:
            self._changed()
        return "cancelled_running"

    def take(self) -> ConversationRequest | None:
        """Start the first queued request, unless one is running; None if there is none to start."""
        if self._running is not None or not self._queued:
            return None
        self._running, self._is_cancelling = self._queued.pop(0), False
        self._changed()
        return self._running

    def ask(self, id: str, question: int) -> None:
        """Note that the running request waits for the answer to a question."""
        self._require_running(id)
        self._question = question
        self._changed()

    def go_on(self, id: str) -> None:
        """Note that the running request waits no longer."""
        self._require_running(id)
        self._question = 0
        self._changed()

    def settle(self, id: str) -> None:
        """Remove the running request, which has really ended."""
        self._require_running(id)
        self._running, self._is_cancelling, self._question = None, False, 0
        self._changed()

    def drain(self, now_ms: int, timeout_ms: int = DRAIN_TIMEOUT_MS) -> None:
        """Refuse new requests from now on; those that are queued may start until the timeout. A
        second call changes nothing.
        """
        if self._stop_at_ms is None:
            self._stop_at_ms = now_ms + timeout_ms
            self._changed()

    def expire(self, now_ms: int) -> tuple[ConversationRequest, ...]:
        """Remove and return all queued requests if the drain's timeout has passed."""
        if self._stop_at_ms is None or now_ms < self._stop_at_ms or not self._queued:
            return ()
        rejected, self._queued = tuple(self._queued), []
        self._changed()
        return rejected

    def find(self, text: str) -> QueueEntry | None:
        """Return the request with this id, or this client's id."""
        snapshot = self.snapshot()
        entries = (*snapshot.queued, *(() if snapshot.running is None else (snapshot.running,)))
        return next((entry for entry in entries if _is_named(entry.request, text)), None)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._running is None and not self._queued

    @property
    def has_room(self) -> bool:
        """Whether another request can be queued."""
        return len(self._queued) < MAX_QUEUED

    @property
    def is_stopping(self) -> bool:
        """Whether new requests are refused."""
        return self._stop_at_ms is not None

    def snapshot(self) -> QueueSnapshot:
        """Return the present state."""
        return QueueSnapshot(
            version=self._version,
            running=None
            if self._running is None
            else QueueEntry(
                request=self._running,
                state=self._running_state(),
                position=0,
                question=self._question,
            ),
            queued=tuple(
                QueueEntry(request=request, state="queued", position=position)
                for position, request in enumerate(self._queued, start=1)
            ),
            stopping=self.is_stopping,
        )

    def observe(self, observer: Callable[[QueueSnapshot], None]) -> Callable[[], None]:
        """Call *observer* with each later snapshot; return a function that ends this."""
        self._observers.append(observer)
        return lambda: self._observers.remove(observer) if observer in self._observers else None

    def _running_state(self) -> RequestState:
        if self._is_cancelling:
            return "cancelling"
        return "waiting" if self._question else "running"

    def _require_running(self, id: str) -> None:
        if self._running is None or self._running.id != id:
            raise ValueError(f"request {id} does not run")

    def _find_queued(self, text: str) -> ConversationRequest | None:
        return next((request for request in self._queued if _is_named(request, text)), None)

    def _cancel_running(self) -> str | None:
        """Mark the running request; return its id if it was not marked before."""
        if self._running is None or self._is_cancelling:
            return None
        self._is_cancelling = True
        return self._running.id

    def _changed(self) -> None:
        self._version += 1
        snapshot = self.snapshot()
        for observer in tuple(self._observers):
            try:
                observer(snapshot)
            except Exception:  # noqa: S112 - an observer's bug is its own; the queue goes on
                continue


def _is_named(request: ConversationRequest, text: str) -> bool:
    return text in (request.id, request.client_id)
