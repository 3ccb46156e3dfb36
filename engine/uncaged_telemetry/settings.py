"""Settings of OpenTelemetry, from its variables."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

PREFIX = "OTEL_"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CAPTURING = frozenset({"true", "span_only", "span_and_event"})
PROTOCOLS: Mapping[str, str] = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
"""Entry points of the OTLP exporters."""
Signal = Literal["TRACES", "METRICS"]
_ENVIRONMENT = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Settings of one caller. traces, metrics: the name of the exporter, None for none. content:
    whether spans have the texts of prompts, answers and tool calls. confidential: values that no
    message may have.
    """

    traces: str | None
    metrics: str | None
    content: bool
    propagates: bool
    confidential: tuple[str, ...]

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> TelemetrySettings | None:
        """Return the settings in variables; None if they ask for nothing to be sent."""
        if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return None
        traces, metrics = _exporter("TRACES", variables), _exporter("METRICS", variables)
        if traces is None and metrics is None:
            return None
        propagators = variables.get("OTEL_PROPAGATORS", "tracecontext")
        return cls(
            traces=traces,
            metrics=metrics,
            content=variables.get(CAPTURE, "").strip().lower() in CAPTURING,
            propagates="tracecontext" in {one.strip() for one in propagators.split(",")},
            confidential=tuple(_header_values(variables)),
        )


def _exporter(signal: Signal, variables: Mapping[str, str]) -> str | None:
    """Return the entry point of a signal's exporter. One is needed if a variable names an exporter
    or an address: any other variable may be meant for other programs.
    """
    named = variables.get(f"OTEL_{signal}_EXPORTER", "").partition(",")[0].strip()
    if not named and not (
        variables.get(ENDPOINT) or variables.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    ):
        return None
    if named == "none":
        return None
    if named not in ("", "otlp"):
        return named
    protocol = variables.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or variables.get(PROTOCOL)
    return PROTOCOLS.get(protocol or "http/protobuf", str(protocol))


def _header_values(variables: Mapping[str, str]) -> Iterator[str]:
    for name, text in variables.items():
        if name.endswith("_HEADERS"):
            for pair in text.split(","):
                value = pair.partition("=")[2].strip()
                yield from {value, unquote(value)} - {""}


@contextmanager
def as_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Give this process OpenTelemetry's variables of a caller, and no others, while the block
    creates exporters, which read them there.
    """
    with _ENVIRONMENT:
        before = {name: text for name, text in os.environ.items() if name.startswith(PREFIX)}
        _replace(before, variables)
        try:
            yield
        finally:
            _replace(variables, before)


def _replace(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name in old:
        os.environ.pop(name, None)
    os.environ.update(new)
