"""Spans and metrics of one thread while a worker drives it.

Rule 1: the span of a step is sent when it has an outcome, that of a thread when it has an end
record; each by the process that wrote it. A thread that was left without one has sent the spans of
its finished steps and of its attempts; their parents follow after the resume.
Rule 2: an attempt has a span of its own if anything refers to it, or if it is not the only one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from opentelemetry.trace import SpanKind
from uncaged_engine.door.observing import ModelTurn, ObservedCall, ObservedEffect, ObservedThread
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.services import secrets

from . import attributes, ids
from .metrics import Instruments
from .spans import FinishedSpan, SpanLink, SpanTarget

ENDS = frozenset({"completed", "failed", "killed", "limit"})
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


class ThreadTelemetry:
    """Spans and metrics of a thread. content: whether spans have texts."""

    def __init__(
        self,
        thread: ObservedThread,
        sender: SpanTarget,
        instruments: Instruments | None,
        *,
        content: bool,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.thread = thread
        self.sender = sender
        self.instruments = instruments
        self.content = content
        self.clock_ns = clock_ns
        self.flow = str(thread.start.get("name"))
        self._begin_ns = clock_ns()
        self._root = ids.thread_span_id(thread.thread_id)
        self._open: list[EffectTelemetry] = []
        if instruments is not None:
            instruments.active.add(1, {"uncaged.flow.name": self.flow})
        self._send_interrupted()

    @cached_property
    def known(self) -> Mapping[str, str]:
        """The values of the secrets that config names."""
        return secrets.known_secrets(self.thread.config, self.thread.environment)

    def redact(self, value: object) -> object:
        """Return a value without secrets."""
        return secrets.redact(value, self.known)

    def effect(self, effect: ObservedEffect) -> EffectTelemetry:
        found = EffectTelemetry(self, effect)
        if effect.part is None:
            self._open.clear()  # of the last step
        self._open.append(found)
        return found

    def step(self, seq: int, record: Mapping[str, object]) -> None:
        now_ns = self.clock_ns()
        error = record.get("error")
        role = record.get("role")
        self.sender.send(
            FinishedSpan(
                name="output" if role is not None else "refused",
                begin_ns=now_ns,
                end_ns=now_ns,
                span=ids.step_span_id(self.thread.thread_id, seq),
                parent=self._root,
                attributes={
                    "uncaged.step.seq": seq,
                    **({"uncaged.role": str(role)} if role is not None else {}),
                },
                error=str(error.get("kind", "effect")) if isinstance(error, Mapping) else "",
            )
        )

    def flushed(self, seconds: float) -> None:
        if self.instruments is not None:
            self.instruments.flushes.record(seconds)

    def queued(self, waits: bool) -> None:
        if self.instruments is not None:
            self.instruments.queue.add(1 if waits else -1)

    def left(self, word: str, end: Mapping[str, object] | None, steps: int) -> None:
        now_ns = self.clock_ns()
        if self.instruments is not None:
            flow = {"uncaged.flow.name": self.flow}
            self.instruments.active.add(-1, flow)
            self.instruments.left.add(1, {**flow, "uncaged.thread.status": word})
        self.sender.send(
            FinishedSpan(
                name="drive",
                begin_ns=self._begin_ns,
                end_ns=now_ns,
                parent=self._root,
                attributes={"uncaged.thread.status": word, "uncaged.thread.steps": steps},
            )
        )
        if word not in ENDS:
            return
        for effect in self._open:
            effect.end_with_thread(word)
        self.sender.send(
            FinishedSpan(
                name=attributes.thread_name(self.thread),
                begin_ns=started_ns(self.thread.start) or self._begin_ns,
                end_ns=now_ns,
                span=self._root,
                attributes=attributes.thread_attributes(self.thread)
                | attributes.end_attributes(word, end, steps),
                links=thread_links(self.thread.start),
                error=attributes.end_error(word, end),
            )
        )

    def _send_interrupted(self) -> None:
        """Send the span of the attempt that ended with the thread's last process: its turns and
        tool calls may have been sent, and refer to it.
        """
        lost, thread = self.thread.interrupted, self.thread.thread_id
        if lost is not None:
            self.sender.send(
                FinishedSpan(
                    name=f"attempt {lost.attempt}",
                    begin_ns=lost.begun_ms * NS_PER_MS,
                    end_ns=lost.last_ms * NS_PER_MS,
                    span=ids.attempt_span_id(thread, lost.seq, None, lost.attempt),
                    parent=ids.step_span_id(thread, lost.seq),
                    attributes={"uncaged.attempt": lost.attempt},
                    error="interrupted",
                )
            )


class EffectTelemetry:
    """Spans and metrics of one effect."""

    def __init__(self, thread: ThreadTelemetry, effect: ObservedEffect) -> None:
        self._thread = thread
        self._effect = effect
        self._number = effect.attempt
        self._begin_ns = self._attempt_ns = thread.clock_ns()
        self._has_further = effect.attempt > 1
        self._is_parent = False
        self._is_sent = False
        self._lock = threading.Lock()  # a role's tool calls may come from other threads

    def headers(self) -> Mapping[str, str]:
        found = self._thread.sender.headers(self._attempt_id)
        self._is_parent = self._is_parent or bool(found)
        return found

    def attempt(self, number: int, fields: Mapping[str, object]) -> None:
        error = fields.get("error")
        kind = error.get("kind", "effect") if isinstance(error, Mapping) else "unusable"
        problem = error.get("message", "") if isinstance(error, Mapping) else fields.get("problem")
        with self._lock:
            self._send_attempt(str(kind), str(problem or ""), {})
            self._number, self._attempt_ns = number, self._thread.clock_ns()
            self._has_further, self._is_parent = True, False

    def model_turn(self, turn: ModelTurn) -> None:
        thread = self._thread
        if thread.instruments is not None:
            thread.instruments.count_turn(turn)
        if not thread.sender.sends:
            return
        texts = attributes.content_of_turn(turn, thread.redact) if thread.content else {}
        self._send_child(
            f"chat {turn.model}",
            turn.seconds,
            {**attributes.turn_attributes(turn), **texts},
            kind=SpanKind.CLIENT,
            error=turn.error,
        )

    def tool_call(self, call: ObservedCall) -> None:
        if not self._thread.sender.sends:
            return
        texts = (
            attributes.content_of_call(call, self._thread.redact) if self._thread.content else {}
        )
        self._send_child(
            f"execute_tool {attributes.tool_name(call)}",
            call.seconds or 0.0,
            {**attributes.call_attributes(call), **texts},
            error="tool_error" if call.failed else "",
        )

    def done(self, outcome: Outcome) -> None:
        self._count(outcome)
        error, message = attributes.outcome_error(outcome)
        found = attributes.outcome_attributes(outcome)
        is_finished = isinstance(outcome, Answer | Failure)
        with self._lock:
            if self._has_further or self._is_parent or not is_finished:
                self._send_attempt(error, message, found)
            if is_finished:
                self._send_step(error, message, found)

    def end_with_thread(self, word: str) -> None:
        """Send the span of a step that its thread's end left open."""
        with self._lock:
            if not self._is_sent:
                self._send_step(word, "", {})

    @property
    def _attempt_id(self) -> int:
        effect, thread = self._effect, self._thread.thread.thread_id
        return ids.attempt_span_id(thread, effect.seq, effect.part, self._number)

    @property
    def _step_id(self) -> int:
        effect = self._effect
        return ids.step_span_id(self._thread.thread.thread_id, effect.seq, effect.part)

    def _send_child(
        self, name: str, seconds: float, found: attributes.Attributes, **more: Any
    ) -> None:
        now_ns = self._thread.clock_ns()
        with self._lock:
            self._is_parent = True
            parent = self._attempt_id
        self._thread.sender.send(
            FinishedSpan(
                name=name,
                begin_ns=now_ns - round(seconds * NS_PER_S),
                end_ns=now_ns,
                parent=parent,
                attributes=found,
                **more,
            )
        )

    def _send_attempt(self, error: str, message: str, found: attributes.Attributes) -> None:
        self._thread.sender.send(
            FinishedSpan(
                name=f"attempt {self._number}",
                begin_ns=self._attempt_ns,
                end_ns=self._thread.clock_ns(),
                span=self._attempt_id,
                parent=self._step_id,
                attributes={"uncaged.attempt": self._number, **found},
                error=error,
                description=self._description(message),
            )
        )

    def _send_step(self, error: str, message: str, found: attributes.Attributes) -> None:
        effect, thread = self._effect, self._thread.thread.thread_id
        self._is_sent = True
        parent = (
            ids.thread_span_id(thread)
            if effect.part is None
            else ids.step_span_id(thread, effect.seq)
        )
        links = (
            [SpanLink(thread=effect.child, span=ids.thread_span_id(effect.child), relation="child")]
            if effect.child is not None
            else []
        )
        self._thread.sender.send(
            FinishedSpan(
                name=attributes.step_name(effect),
                begin_ns=effect.intended_ms * NS_PER_MS,
                end_ns=self._thread.clock_ns(),
                span=self._step_id,
                parent=parent,
                kind=attributes.step_kind(effect),
                attributes=attributes.step_attributes(effect) | found,
                links=links,
                error=error,
                description=self._description(message),
            )
        )

    def _description(self, message: str) -> str:
        """Return the message of an error, which may quote an answer, if texts are sent."""
        return str(self._thread.redact(message)) if self._thread.content and message else ""

    def _count(self, outcome: Outcome) -> None:
        instruments, effect = self._thread.instruments, self._effect
        if instruments is None:
            return
        error, _ = attributes.outcome_error(outcome)
        instruments.steps.record(
            (self._thread.clock_ns() - self._begin_ns) / NS_PER_S,
            {"uncaged.effect.kind": effect.kind, **({"error.type": error} if error else {})},
        )
        flow = self._thread.flow
        instruments.count_usage(attributes.usage_of(outcome), flow, effect.kind)


def started_ns(start: Mapping[str, object]) -> int:
    """Return when a thread was started, by its start record; 0 if the record does not say it."""
    started_ms = start.get("timestamp")
    return started_ms * NS_PER_MS if isinstance(started_ms, int) else 0


def thread_links(start: Mapping[str, object]) -> list[SpanLink]:
    """Return the links of a thread to the step that started it, and to the last step that it was
    copied from.
    """
    found = []
    for key, relation in (("parent", "parent"), ("forkFrom", "source")):
        origin = start.get(key)
        if isinstance(origin, Mapping) and isinstance(origin.get("threadId"), str):
            thread, seq = str(origin["threadId"]), origin.get("seq")
            span = (
                ids.step_span_id(thread, seq)
                if isinstance(seq, int) and seq > 0
                else ids.thread_span_id(thread)
            )
            found.append(SpanLink(thread=thread, span=span, relation=relation))
    return found
