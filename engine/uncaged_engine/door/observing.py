"""Protocol between the engine and observers of threads, such as the one that sends spans.

An observer is an entry point of the group ``uncaged_workflow.observers``: a function that takes an
`ObserverRequest`. It is loaded only if a variable of the caller's begins with ``OTEL_``. Its
methods are called between two steps, or by the handler of an effect, so they must not block;
whatever they raise is noted in the thread's debug log, and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass

from ..settings.config import Config
from .outcomes import Outcome

__all__ = [
    "EffectObserver",
    "InterruptedTry",
    "ModelTurn",
    "ObservedCall",
    "ObservedEffect",
    "ObservedThread",
    "Observer",
    "ObserverRequest",
    "ThreadObserver",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverRequest:
    """Request for an observer. variables: the caller's whose names begin with ``OTEL_``; they may
    hold credentials, and are never written to disk. remark: writes a line to the debug log of the
    thread that is observed first.
    """

    variables: Mapping[str, str]
    remark: Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptedTry:
    """Try of an effect that ended with the process that drove the thread.

    begun_ms: of its intent or attempt line. last_ms: of the thread's last line before.
    """

    seq: int
    attempt: int
    begun_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedThread:
    """Thread that a worker takes up. start: its start record, with parameters. steps: number of
    finished ones. environment: the caller's, for the values of secrets.
    """

    thread_id: ThreadId
    hash: BundleHash
    start: Mapping[str, object]
    steps: int
    has_roles: bool
    config: Config
    environment: Mapping[str, str]
    interrupted: InterruptedTry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedEffect:
    """Effect that is performed now. attempt, intended_ms: as in its context. part: the index within
    the effect that it is a part of. child: the thread that it starts.
    """

    seq: int
    part: int | None
    kind: str
    body: object
    attempt: int
    intended_ms: int
    child: ThreadId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTurn:
    """Request to a model with its reply. provider: the API's name. stop: why the reply ended, "" if
    there is none. error: kind of the failure. usage: as in a step's record, of this turn.
    content(): the conversation as JSON, without secrets: ``system`` (text), ``input`` and
    ``output`` (lists of messages as in OpenTelemetry's conventions).
    """

    provider: str
    model: str
    address: str
    seconds: float
    stop: str
    usage: Mapping[str, object]
    content: Callable[[], Mapping[str, object]]
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCall:
    """Call of a tool by an agent. seconds: None if the agent's protocol does not say it.
    arguments, result: without secrets.
    """

    tool: str
    seconds: float | None
    failed: bool
    arguments: object = None
    result: str | None = None


class EffectObserver(Protocol):
    """Observer of one effect; the parts of an effect have their own."""

    def headers(self) -> Mapping[str, str]:
        """Return the W3C trace context that a request or a process gets, by header name."""

    def attempt(self, number: int, fields: Mapping[str, object]) -> None:
        """Begin a further attempt. fields: of its line, with what was wrong with the last one."""

    def model_turn(self, turn: ModelTurn) -> None: ...
    def tool_call(self, call: ObservedCall) -> None: ...

    def done(self, outcome: Outcome) -> None:
        """End the effect, for this process."""


class ThreadObserver(Protocol):
    """Observer of one thread, while a worker drives it."""

    def effect(self, effect: ObservedEffect) -> EffectObserver: ...

    def step(self, seq: int, record: Mapping[str, object]) -> None:
        """Take a step that was finished without an effect: an output, or a refusal."""

    def flushed(self, seconds: float) -> None:
        """Take the duration of one flush of the journal."""

    def queued(self, waits: bool) -> None:
        """Take the begin or the end of an agent's wait for a free slot on this machine."""

    def left(self, word: str, end: Mapping[str, object] | None, steps: int) -> None:
        """End the thread, for this process. word: an end word, or paused, waiting, unknown,
        interrupted. end: its end record. steps: number of finished ones.
        """


class Observer(Protocol):
    """Observer of the threads of one process whose callers have the same variables."""

    def thread(self, thread: ObservedThread) -> ThreadObserver: ...

    def close(self, timeout_s: float) -> None:
        """Send what is left, for at most *timeout_s*."""
