"""OTLP collector on loopback: decodes the spans and metrics that are sent to it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

ARRIVES_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLink:
    """Link of a span, with ids in hexadecimal."""

    trace: str
    span: str
    relation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSpan:
    """Span as it arrived, with ids in hexadecimal; parent "" for a root."""

    trace: str
    span: str
    parent: str
    name: str
    begin_ns: int
    end_ns: int
    failed: bool
    description: str
    attributes: Mapping[str, Any]
    links: Sequence[SeenLink]
    resource: Mapping[str, Any]


class Collector:
    """Collector. metrics: the sums and counts of the points by the metric's name."""

    def __init__(self) -> None:
        self.spans: list[SeenSpan] = []
        self.metrics: dict[str, float] = {}
        self.headers: list[Mapping[str, str]] = []
        self._arrived = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    data = gzip.decompress(data)
                collector.take(self.path, data, dict(self.headers))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def variables(self) -> dict[str, str]:
        """Variables of a caller who sends here, soon after each step."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "20"}

    def take(self, path: str, data: bytes, headers: Mapping[str, str]) -> None:
        with self._arrived:
            self.headers.append(headers)
            if path == "/v1/traces":
                self.spans += spans_in(data)
            else:
                for name, value in metrics_in(data):
                    self.metrics[name] = self.metrics.get(name, 0) + value
            self._arrived.notify_all()

    def wait(self, is_there: Callable[[Collector], bool]) -> None:
        """Wait until what arrived is enough."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: is_there(self), ARRIVES_S), [
                span.name for span in self.spans
            ]

    def of(self, thread: str) -> dict[str, SeenSpan]:
        """Return the spans of a thread by name; a name that came twice is numbered."""
        found: dict[str, SeenSpan] = {}
        for span in [one for one in self.spans if one.trace == f"{ulid_number(thread):032x}"]:
            number = 1
            while (name := span.name if number == 1 else f"{span.name} ({number})") in found:
                number += 1
            found[name] = span
        return found

    def root(self, thread: str) -> SeenSpan | None:
        """Return the span of a whole thread; None if it has not arrived."""
        trace = f"{ulid_number(thread):032x}"
        return next((one for one in self.spans if one.trace == trace and not one.parent), None)


def ulid_number(text: str) -> int:
    """Return the number that a ULID spells, by its own definition."""
    number = 0
    for character in text:
        number = number * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(character)
    return number


def spans_in(data: bytes) -> Iterator[SeenSpan]:
    for group in ExportTraceServiceRequest.FromString(data).resource_spans:
        resource = attributes_in(group.resource.attributes)
        for span in (one for scope in group.scope_spans for one in scope.spans):
            links = [
                SeenLink(
                    trace=link.trace_id.hex(),
                    span=link.span_id.hex(),
                    relation=str(attributes_in(link.attributes).get("uncaged.relation")),
                )
                for link in span.links
            ]
            yield SeenSpan(
                trace=span.trace_id.hex(),
                span=span.span_id.hex(),
                parent=span.parent_span_id.hex(),
                name=span.name,
                begin_ns=span.start_time_unix_nano,
                end_ns=span.end_time_unix_nano,
                failed=span.status.code == 2,
                description=span.status.message,
                attributes=attributes_in(span.attributes),
                links=links,
                resource=resource,
            )


def metrics_in(data: bytes) -> Iterator[tuple[str, float]]:
    for group in ExportMetricsServiceRequest.FromString(data).resource_metrics:
        for metric in (one for scope in group.scope_metrics for one in scope.metrics):
            for point in metric.sum.data_points:
                yield metric.name, point.as_double or float(point.as_int)
            for histogram in metric.histogram.data_points:
                yield metric.name, float(histogram.count)


def attributes_in(pairs: Sequence[KeyValue]) -> dict[str, Any]:
    return {pair.key: value_in(pair.value) for pair in pairs}


def value_in(value: AnyValue) -> Any:
    if value.HasField("array_value"):
        return [value_in(one) for one in value.array_value.values]
    name = value.WhichOneof("value")
    return None if name is None else getattr(value, name)


@contextmanager
def collecting() -> Iterator[Collector]:
    """Yield a collector that listens."""
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        thread.join()
        collector.server.server_close()
