"""Observers of threads: found once per process and set of variables, and called so that no fault of
one reaches a step.

Rule: without a variable that begins with ``OTEL_`` nothing is looked up, imported or called.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar, cast

from uncaged_bundles.ids import ThreadId

from .. import plugins
from ..door.effects import EffectContext
from ..door.observing import (
    EffectObserver,
    InterruptedTry,
    ModelTurn,
    ObservedCall,
    ObservedEffect,
    ObservedThread,
    Observer,
    ObserverRequest,
    ThreadObserver,
)
from ..door.outcomes import Outcome
from ..journal.codec import decode
from ..journal.infolog import InfoLog
from ..journal.recover import History, timestamp_ms
from ..settings.variables import observed_variables

Factory = Callable[[ObserverRequest], Observer | None]
MAX_SETS = 16
"""Of variables that a process has observers for, since they are kept as long as it lives."""
P = ParamSpec("P")
T = TypeVar("T")


class Observers:
    """Observers of a process, by the variables of the callers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[frozenset[tuple[str, str]], tuple[Observer, ...]] = {}

    def observe(self, thread: ObservedThread, info: InfoLog) -> ThreadObservation | None:
        """Return the observation of a thread; None without a variable that asks for one."""
        variables = observed_variables(thread.environment)
        if not variables:
            return None
        guard = ObserverGuard(info)
        key = frozenset(variables.items())
        with self._lock:
            observers = self._found.get(key)
            if observers is None and len(self._found) < MAX_SETS:
                observers = tuple(_load(variables, guard, info))
                if observers:  # variables that ask for nothing are looked at again
                    self._found[key] = observers
        if observers is None:
            info.note("9DMC4E7A", f"not observed: {MAX_SETS} other sets of variables are in use")
            return None
        made = [
            one
            for observer in observers
            if (one := guard.call(observer.thread, thread)) is not None
        ]
        return ThreadObservation(made, guard) if made else None

    @property
    def is_empty(self) -> bool:
        """Whether no thread was observed."""
        return not self._found

    def close(self, timeout_s: float) -> None:
        """Have each observer send what is left; an observer that raises has lost it."""
        for observer in (one for found in self._found.values() for one in found):
            ObserverGuard(None).call(observer.close, timeout_s)


def _load(variables: Mapping[str, str], guard: ObserverGuard, info: InfoLog) -> Iterable[Observer]:
    request = ObserverRequest(variables=variables, remark=lambda text: info.note("5HQX2WBT", text))
    for name in plugins.names(group=plugins.OBSERVERS):
        found = guard.call(_made, name, request)
        if found is not None:
            yield found


def _made(name: str, request: ObserverRequest) -> Observer | None:
    return cast("Factory", plugins.find(name, group=plugins.OBSERVERS))(request)


class ObserverGuard:
    """Calls of observers. The first fault of a thread's observers is noted in its debug log."""

    def __init__(self, info: InfoLog | None) -> None:
        self._info = info

    def call(self, work: Callable[P, T], *values: P.args, **named: P.kwargs) -> T | None:
        """Return what *work* returns; None if it raises."""
        try:
            return work(*values, **named)
        # code of another distribution, which may not keep a thread from running
        except Exception as exc:
            if self._info is not None:
                self._info.note("3VYB8N6K", f"an observer failed: {type(exc).__name__}: {exc}")
                self._info = None
            return None


class ThreadObservation:
    """The observers of one thread."""

    def __init__(self, observers: Sequence[ThreadObserver], guard: ObserverGuard) -> None:
        self._observers = observers
        self._guard = guard
        self._performed = 0

    def effect(
        self, context: EffectContext, body: object, child: Callable[[], ThreadId | None]
    ) -> EffectObservation:
        """Begin an effect. child: finds the thread that it starts."""
        self._performed = max(self._performed, context.seq)
        effect = ObservedEffect(
            seq=context.seq,
            part=context.part,
            kind=context.kind,
            body=body,
            attempt=context.attempt,
            intended_ms=context.intended_ms,
            child=self._guard.call(child),
        )
        return EffectObservation(
            [
                found
                for one in self._observers
                if (found := self._guard.call(one.effect, effect)) is not None
            ],
            self._guard,
        )

    def step_written(self, seq: int, line: bytes) -> None:
        """Take the sealed line of a finished step, unless its effect was observed."""
        if seq <= self._performed:
            return
        record = decode(line[:-1])
        if isinstance(record, dict):
            self._each(lambda one: one.step(seq, record))

    def flushed(self, seconds: float) -> None:
        self._each(lambda one: one.flushed(seconds))

    def queued(self, waits: bool) -> None:
        self._each(lambda one: one.queued(waits))

    def left(self, word: str, read: Callable[[], History]) -> None:
        """End the thread. read: reads its journal once more, for its end record."""
        history = self._guard.call(read)
        end = None if history is None else history.end
        steps = 0 if history is None else len(history.steps)
        self._each(lambda one: one.left(word, end, steps))

    def _each(self, work: Callable[[ThreadObserver], None]) -> None:
        for observer in self._observers:
            self._guard.call(work, observer)


class EffectObservation:
    """The observers of one effect, as one."""

    def __init__(self, observers: Sequence[EffectObserver], guard: ObserverGuard) -> None:
        self._observers = observers
        self._guard = guard

    def headers(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for observer in self._observers:
            found |= self._guard.call(observer.headers) or {}
        return found

    def attempt(self, number: int, fields: Mapping[str, object]) -> None:
        self._each(lambda one: one.attempt(number, fields))

    def model_turn(self, turn: ModelTurn) -> None:
        self._each(lambda one: one.model_turn(turn))

    def tool_call(self, call: ObservedCall) -> None:
        self._each(lambda one: one.tool_call(call))

    def done(self, outcome: Outcome) -> None:
        self._each(lambda one: one.done(outcome))

    def _each(self, work: Callable[[EffectObserver], None]) -> None:
        for observer in self._observers:
            self._guard.call(work, observer)


def interrupted_try(history: History, last_line: bytes) -> InterruptedTry | None:
    """Return the try that a former owner of the thread left without an outcome or a void.
    last_line: that owner's last.
    """
    pending = history.pending
    if (
        pending is None
        or pending.voided is not None
        or history.waiting
        or history.answer is not None
    ):
        return None
    begun = pending.attempts[-1] if pending.attempts else pending.line
    return InterruptedTry(
        seq=pending.seq,
        attempt=pending.tries,
        begun_ms=timestamp_ms(begun),
        last_ms=timestamp_ms(last_line),
    )
