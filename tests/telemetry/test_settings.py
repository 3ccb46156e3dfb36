"""Settings of telemetry, the ids of spans, and what happens if a package is missing."""

from __future__ import annotations

import logging
import os
import sys

import pytest
from uncaged_bundles.ids import ThreadId
from uncaged_engine.door.observing import ObserverRequest
from uncaged_telemetry import ids
from uncaged_telemetry.observer import observer
from uncaged_telemetry.pipeline import Remarks, listen, unlisten
from uncaged_telemetry.settings import TelemetrySettings, as_environment

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_SERVICE_NAME": "mine"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", **ENDPOINT},
        {"OTEL_SDK_DISABLED": "TRUE", **ENDPOINT},
    ],
)
def test_nothing_is_sent_without_an_exporter(variables: dict[str, str]) -> None:
    """A variable that names neither an exporter nor an address may be meant for other programs."""
    assert TelemetrySettings.of(variables) is None
    assert observer(ObserverRequest(variables=variables, remark=pytest.fail)) is None


def test_exporters_are_those_that_the_variables_name() -> None:
    """OTLP over HTTP is the default of each signal; the protocol selects its exporter."""
    both = TelemetrySettings.of(ENDPOINT)
    assert both is not None
    assert (both.traces, both.metrics) == ("otlp_proto_http", "otlp_proto_http")
    assert both.propagates and not both.content
    other = TelemetrySettings.of(
        {
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
            "OTEL_PROPAGATORS": "b3",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "True",
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=se%20cret",
        }
    )
    assert other is not None
    assert (other.traces, other.metrics) == ("otlp_proto_grpc", None)
    assert other.content and not other.propagates
    assert set(other.confidential) == {"se%20cret", "se cret"}


def test_exporters_read_the_variables_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside the block the process has the caller's variables and no others, afterwards its own."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "own")
    with as_environment(ENDPOINT):
        assert os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://127.0.0.1:1"
        assert "OTEL_SERVICE_NAME" not in os.environ
    assert os.environ["OTEL_SERVICE_NAME"] == "own"
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" not in os.environ


def test_a_missing_package_is_one_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the SDK, or without the exporter, nothing is sent, and the debug log says what to
    install. The log of the SDK has no handler for it.
    """
    remarks: list[str] = []
    handlers = len(logging.getLogger("opentelemetry").handlers)
    unknown = {"OTEL_TRACES_EXPORTER": "carrier-pigeon"}
    assert observer(ObserverRequest(variables=unknown, remark=remarks.append)) is None
    assert len(logging.getLogger("opentelemetry").handlers) == handlers
    for name in [one for one in sys.modules if one.startswith("uncaged_telemetry.pipeline")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics", None)
    assert observer(ObserverRequest(variables=ENDPOINT, remark=remarks.append)) is None
    assert remarks == [
        "no spans and metrics are sent: the exporter 'carrier-pigeon' of traces is not installed; "
        "install the package that has it",
        "no spans and metrics are sent: the module opentelemetry.sdk.metrics is missing; "
        "pip install 'uncaged-workflow[otel]'",
    ]


def test_a_missing_exporter_of_one_signal_leaves_the_other() -> None:
    """Spans are sent without metrics; after the end of the pipeline its handler is gone from the
    log of the SDK.
    """
    remarks: list[str] = []
    handlers = len(logging.getLogger("opentelemetry").handlers)
    variables = {**ENDPOINT, "OTEL_METRICS_EXPORTER": "carrier-pigeon"}
    found = observer(ObserverRequest(variables=variables, remark=remarks.append))
    assert found is not None
    [remark] = remarks
    assert remark.startswith("no metrics are sent: the exporter 'carrier-pigeon' of metrics is not")
    assert len(logging.getLogger("opentelemetry").handlers) == handlers + 1
    found.close(30)
    assert len(logging.getLogger("opentelemetry").handlers) == handlers


def test_the_log_of_one_pipeline_has_no_secrets_of_another() -> None:
    """Handlers of two pipelines both get a message, and both remove the values of both."""
    got: list[str] = []
    both = [Remarks(got.append, (value,)) for value in ("token-a", "token-b")]
    for one in both:
        listen(one)
    logging.getLogger("opentelemetry").warning("refused: token-a, token-b")
    for one in both:
        unlisten(one)
    assert got == ["OpenTelemetry: refused: …, …"] * 2


def test_ids_are_derived_from_threads_and_steps() -> None:
    """The id of a trace is the ULID's 16 bytes; those of spans differ by step, part and attempt."""
    thread = ThreadId("01HX5WBE00ABCDEFGHJKMNPQRS")
    trace = ids.trace_id(thread)
    assert trace >> 80 == 1714963200000
    found = {
        ids.thread_span_id(thread),
        *(ids.step_span_id(thread, seq, part) for seq in (1, 2) for part in (None, 0, 1)),
        *(ids.attempt_span_id(thread, 1, part, number) for part in (None, 0) for number in (1, 2)),
    }
    assert len(found) == 11
    assert ids.traceparent(trace, 255, 1) == f"00-{trace:032x}-00000000000000ff-01"
