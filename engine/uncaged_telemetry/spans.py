"""Spans of one thread: each is sent whole, at its end, with its id and its parent's."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from .ids import trace_id, traceparent
from .pipeline import Pipeline

NO_PARENT = Context()
Attribute = str | bool | int | float | Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanLink:
    """Link to a span of another thread. relation: parent, child, source."""

    thread: str
    span: int
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSpan:
    """Span to send. span: its id, None for a random one. parent: the id, None for a root. error:
    its type, "" without one. description: of the error.
    """

    name: str
    begin_ns: int
    end_ns: int
    span: int | None = None
    parent: int | None = None
    kind: SpanKind = SpanKind.INTERNAL
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    links: Sequence[SpanLink] = ()
    error: str = ""
    description: str = ""


class SpanTarget(Protocol):
    """Interface of what takes the spans of a thread."""

    @property
    def sends(self) -> bool: ...
    def headers(self, span: int) -> Mapping[str, str]: ...
    def send(self, finished: FinishedSpan) -> None: ...


class SpanSender:
    """Sender of a thread's spans. Whether the trace is sampled follows from its id, so that all
    processes decide alike.
    """

    def __init__(self, pipeline: Pipeline, thread: str, *, propagates: bool) -> None:
        self._pipeline = pipeline
        self._trace = trace_id(thread)
        self._propagates = propagates
        self._flags = TraceFlags(TraceFlags.DEFAULT)
        if pipeline.sampler is not None:
            decision = pipeline.sampler.should_sample(None, self._trace, "thread").decision
            self._flags = TraceFlags(
                TraceFlags.SAMPLED if decision is Decision.RECORD_AND_SAMPLE else TraceFlags.DEFAULT
            )

    @property
    def sends(self) -> bool:
        """Whether the spans of the thread are sent."""
        return self._pipeline.tracer is not None and bool(self._flags & TraceFlags.SAMPLED)

    def headers(self, span: int) -> Mapping[str, str]:
        """Return the headers that make a span the parent of others."""
        if self._pipeline.tracer is None or not self._propagates:
            return {}
        return {"traceparent": traceparent(self._trace, span, self._flags)}

    def send(self, finished: FinishedSpan) -> None:
        """Queue a span to be sent."""
        tracer = self._pipeline.tracer
        if tracer is None or not self.sends:
            return
        parent = (
            NO_PARENT
            if finished.parent is None
            else set_span_in_context(NonRecordingSpan(self._context(self._trace, finished.parent)))
        )
        attributes = dict(finished.attributes)
        if finished.error:
            attributes["error.type"] = finished.error
        links = [
            Link(
                self._context(trace_id(link.thread), link.span),
                {"uncaged.relation": link.relation, "uncaged.thread.id": link.thread},
            )
            for link in finished.links
        ]
        span_id = finished.span or secrets.randbits(64) or 1
        with self._pipeline.ids.use(self._trace, span_id):
            span = tracer.start_span(
                finished.name,
                context=parent,
                kind=finished.kind,
                attributes=attributes,
                links=links,
                start_time=min(finished.begin_ns, finished.end_ns),
            )
        if finished.error:
            span.set_status(Status(StatusCode.ERROR, finished.description or None))
        span.end(finished.end_ns)

    def _context(self, trace: int, span: int) -> SpanContext:
        return SpanContext(trace, span, is_remote=True, trace_flags=self._flags)
