"""Protocol between the step loop and effect handlers: context, cancellation, declarations."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from uncaged_bundles.ids import ThreadId
from uncaged_bundles.limits import Limits
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..settings.config import Config
from .observing import EffectObserver
from .outcomes import Outcome
from .past import PastEffect

if TYPE_CHECKING:
    from .agents import EffectTools
    from .notifications import Notification

__all__ = [
    "COMMON_KEYS",
    "AgentPermits",
    "Cancel",
    "EffectContext",
    "EffectRecorder",
    "Handler",
    "Rule",
    "RunChild",
    "ThreadContext",
    "handled",
]

Rule = Literal["repeat", "restore", "ask"]
"""Recovery rule for an intent that a crash left open.

repeat: idempotent, again with the same key. restore: the handler puts the workspace back and asks
again. ask: a person decides.
"""


COMMON_KEYS = frozenset({"retry", "label"})
"""Keys of any effect that its handler does not get: the retry policy, and a label for people."""


def handled(body: object) -> object:
    """Return the body of an effect as its handler gets it, without the keys of any effect."""
    if not isinstance(body, dict) or COMMON_KEYS.isdisjoint(body):
        return body
    return {key: value for key, value in body.items() if key not in COMMON_KEYS}


class Cancel:
    """Cancellation token of one effect, with the actions that stop it. A pause cancels effects that
    opt in.
    """

    def __init__(self) -> None:
        self.requested = False  # an attribute: it is looked at for every effect
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._actions: list[Callable[[], None]] = []
        self._is_final = False
        self._is_pausing = False
        self._stopping_for_pause = 0

    @property
    def only_paused(self) -> bool:
        """Whether a pause is the only reason for the cancellation."""
        return self._event.is_set() and not self._is_final

    def request(self) -> None:
        """Set the flag and run each registered action once."""
        self._is_final = True
        self._stop()

    def pause(self) -> None:
        """Cancel an effect that opted in to pauses; any other runs to its end."""
        with self._lock:
            self._is_pausing = True
            stops = self._stopping_for_pause > 0
        if stops:
            self._stop()

    @contextmanager
    def stops_for_pause(self) -> Iterator[None]:
        """Let a pause cancel the effect inside this block; at once if one was requested already."""
        with self._lock:
            self._stopping_for_pause += 1
            late = self._is_pausing
        if late:
            self._stop()
        try:
            yield
        finally:
            with self._lock:
                self._stopping_for_pause -= 1

    def _stop(self) -> None:
        with self._lock:
            self.requested = True  # before those who wait for the event look at it
            self._event.set()
            actions, self._actions = self._actions, []
        for action in actions:
            action()

    def wait(self, timeout_s: float | None) -> bool:
        """Block until cancelled or *timeout_s* has passed; True means cancelled."""
        return self._event.wait(timeout_s)

    @contextmanager
    def on_request(self, action: Callable[[], None]) -> Iterator[None]:
        """Run *action* when cancelled inside this block; at once if it has happened already."""
        with self._lock:
            late = self._event.is_set()
            if not late:
                self._actions.append(action)
        if late:
            action()
        try:
            yield
        finally:
            with self._lock:
                if action in self._actions:
                    self._actions.remove(action)


def _ignore(_notification: Notification) -> None:
    """Send nothing: no person wants to know of a trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadContext:
    """Context that all effects of a thread share while a worker drives it.

    start: the thread's start record. steps(): the records of all finished steps so far, in order
    (each is read from the journal once).
    environment, directory: the caller's, for child processes only; never written to disk.
    remember_paths(found): journal and flush the identity of each granted path at its first use;
    returns all that is journalled. left(): the rest of each limit of money, tokens and time that
    binds this thread. screenshots: a person asked for pictures of what it does in a browser.
    run_child: runs the thread that an effect starts, in a trial or a shared store; None otherwise.
    agents: permits of a shared store; None otherwise.
    notify(notification): send it to the person, without waiting.
    """

    store: Store
    bundle: Bundle
    config: Config
    thread_id: ThreadId
    start: Mapping[str, object]
    steps: Callable[[], Sequence[Mapping[str, object]]]
    environment: Mapping[str, str]
    directory: Path
    remember_paths: Callable[[Mapping[str, object]], Mapping[str, object]]
    left: Callable[[], Mapping[str, float]]
    clock_ms: Callable[[], int]
    screenshots: bool = False
    run_child: RunChild | None = None
    agents: AgentPermits | None = None
    notify: Callable[[Notification], None] = _ignore


class AgentPermits(Protocol):
    """Limit on the agents that work at once in all workers of a shared store."""

    def try_take(self) -> bool:
        """Take a permit for an agent; False if as many as are allowed work already. It ends with
        this process at the latest.

        Raises:
            StorageError, DamagedError: the store cannot be asked.
        """

    def release(self) -> None:
        """Return a permit. Raises nothing."""


class RunChild(Protocol):
    """Run of a flow for the effect that starts a thread of it, where that is no thread of the
    worker's directory.
    """

    def __call__(
        self,
        context: EffectContext,
        *,
        flow: str,
        prompt: str,
        params: Mapping[str, object],
        max_rounds: int | None,
    ) -> Outcome: ...


class EffectRecorder(Protocol):
    """The thread's side of a context: its journal and its followers."""

    def record_attempt(self, context: EffectContext, fields: Mapping[str, object]) -> None: ...
    def report_progress(self, context: EffectContext, fields: Mapping[str, object]) -> None: ...
    def perform_part(
        self, context: EffectContext, index: int, kind: str, body: object
    ) -> Outcome: ...


# not frozen: one is made for every effect, and freezing triples what that costs
@dataclass(slots=True, kw_only=True)
class EffectContext:
    """Context of one effect; the attributes of `thread` are also attributes here.

    attempt: 1, or higher when a crash, a kill or a lack of the environment left an earlier try
    open.
    key: ``threadId/seq``, the same for every attempt: send it as idempotency key.
    intended_ms: when the effect was first asked for; the same after a crash. note: the text of
    ``resume --note``, once.
    answer: a person's answer to an earlier ``Wait`` of this effect; None without one.
    redo: an earlier try was a ``Void`` with doubt, and a person decided for ``resume --redo``.
    part: the effect's index within the one that it is a part of. done: records of parts that an
    earlier try finished, by index.
    numbers: of the attempts that follow. observer: None if the thread is not observed.
    """

    thread: ThreadContext
    recorder: EffectRecorder
    seq: int
    kind: str
    part: int | None
    attempt: int
    key: str
    intended_ms: int
    cancel: Cancel
    note: str | None
    answer: object
    redo: bool
    done: Mapping[int, Mapping[str, object]]
    numbers: Iterator[int]
    observer: EffectObserver | None = None

    def record_attempt(self, fields: Mapping[str, object]) -> None:
        """Append and flush an attempt line with these fields."""
        self.recorder.record_attempt(self, fields)

    def progress(self, fields: Mapping[str, object]) -> None:
        """Send these fields to followers; never blocks, may be dropped."""
        self.recorder.report_progress(self, fields)

    def perform_sub(self, index: int, kind: str, body: object) -> Outcome:
        """Perform an effect inside this one, journalled as its sub-step."""
        return self.recorder.perform_part(self, index, kind, body)

    @property
    def store(self) -> Store:
        return self.thread.store

    @property
    def bundle(self) -> Bundle:
        return self.thread.bundle

    @property
    def config(self) -> Config:
        return self.thread.config

    @property
    def thread_id(self) -> ThreadId:
        return self.thread.thread_id

    @property
    def start(self) -> Mapping[str, object]:
        return self.thread.start

    @property
    def steps(self) -> Callable[[], Sequence[Mapping[str, object]]]:
        return self.thread.steps

    @property
    def environment(self) -> Mapping[str, str]:
        return self.thread.environment

    @property
    def directory(self) -> Path:
        return self.thread.directory

    @property
    def remember_paths(self) -> Callable[[Mapping[str, object]], Mapping[str, object]]:
        return self.thread.remember_paths

    @property
    def left(self) -> Callable[[], Mapping[str, float]]:
        return self.thread.left

    @property
    def screenshots(self) -> bool:
        return self.thread.screenshots

    @property
    def clock_ms(self) -> Callable[[], int]:
        return self.thread.clock_ms


class Handler(ABC):
    """Handler of one effect kind; an entry point of the group ``uncaged_workflow.effects`` names
    the class.
    """

    kind: str
    limits: type[Limits] = Limits
    """What a policy may set for this kind, and what the kind may do in words."""
    recovery: Rule = "ask"
    answers: Mapping[str, object] = MappingProxyType({})
    only_waits: bool = False
    """Whether performing does nothing but wait, so that a worker may be ended in it, and another
    one begins again.
    """
    is_composite: bool = False
    """Whether the effect performs others as its sub-steps (`parts`)."""
    decided_limits: frozenset[str] = frozenset()
    """Limits of the policy whose refusals `past_refusal` finds. The others hold while an effect is
    performed, and no journal tells whether they would have refused a past one.
    """

    def rule(self, body: object, bundle: Bundle) -> Rule:
        """Return the recovery rule of an intent: `recovery`, unless it depends on the body or the
        policy.
        """
        del body, bundle
        return self.recovery

    def is_harmless(self, body: object, context: EffectContext) -> bool:
        """Tell whether a trial may perform the effect although it was performed before: it changes
        nothing but files in the context's directory. A kind whose rule is not *ask* is harmless,
        unless it says otherwise.
        """
        return self.rule(body, context.bundle) != "ask"

    @abstractmethod
    def perform(self, body: object, context: EffectContext) -> Outcome:
        """Check *body* (the value that the bundle yielded) and the policy's limits, perform the
        effect, and return its outcome.

        When ``context.attempt > 1`` and the rule is *restore*, put the workspace back first. A bad
        body is a Failure, not an exception.
        ``EnvironmentLacks``, ``StorageError`` and ``OSError`` may be raised and become a void. Any
        other exception is a bug of the engine.
        """

    def past_refusal(self, past: PastEffect) -> str | None:
        """Return why the policy refuses a past effect, by the checks of `perform`; None if none of
        them does. The caller has checked that the policy names the kind.
        """
        del past
        return None

    def outcome_schema(self, body: object) -> Mapping[str, object]:
        """Return the JSON Schema of the effect's answer: `answers`, unless it depends on the
        body.
        """
        del body
        return self.answers

    def due_ms(self, body: object, intended_ms: int) -> int | None:
        """Return the moment until which the effect waits, by the wall clock; None for a kind that
        waits for none.
        """
        del body, intended_ms
        return None

    def child(self, key: str, intended_ms: int) -> ThreadId | None:
        """Return the id of the thread that the effect with this key starts; None for a kind that
        starts none.
        """
        del key, intended_ms
        return None

    def parts(self, body: object) -> Sequence[tuple[str, object]]:
        """Return kind and body of each effect inside a composite one; none if *body* is
        malformed.
        """
        del body
        return ()

    def difference(
        self, body: object, outcome: object, lines: Sequence[Mapping[str, object]]
    ) -> str | None:
        """Return in words how the outcome of a composite effect differs from the records of its
        sub-steps; None if it does not.
        """
        del body, outcome, lines
        return None

    def words(self, body: object) -> str:
        """Return a few words for people about the effect, instead of its kind and target; empty
        for a kind that has no better ones.
        """
        del body
        return ""

    def file_changes(
        self,
        store: Store,
        thread: ThreadId,
        start: Mapping[str, Any],
        step: Mapping[str, Any],
        environment: Mapping[str, str],
    ) -> Mapping[str, object] | None:
        """Return the changes of files that a finished step recorded, as ``{"step", "before",
        "after", "files", "patch"}``; None for a step without any.

        Args:
            start, step: records of the thread. environment: for git.
        Raises:
            UncagedError: the files are not here any more.
        """
        del store, thread, start, step, environment
        return None

    def repository(
        self,
        store: Store,
        thread: ThreadId,
        start: Mapping[str, Any],
        steps: Sequence[Mapping[str, Any]],
        environment: Mapping[str, str],
    ) -> Path | None:
        """Return the git repository with the commits that finished steps of the kind recorded; None
        for a thread without files.

        Args: as `file_changes`.
        Raises:
            UncagedError: the files are not here any more.
        """
        del store, thread, start, steps, environment
        return None

    def tools(self, options: Mapping[str, object], context: EffectContext) -> EffectTools | None:
        """Return the kind's operations as tools of a role's agent; None for a kind that has none.

        Args:
            options: limits within those of the policy. context: of the role's effect.
        Raises:
            ShapeError: the options are wrong; its path begins with the kind.
        """
        del options, context
        return None

    def read_answer(self, wait: Mapping[str, object], value: object) -> object:
        """Return a person's answer as it is recorded. wait: the details of the effect's `Wait`.

        Raises:
            UsageError: the answer does not fit the question.
        """
        del wait
        return value
