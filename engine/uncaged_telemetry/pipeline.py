"""Providers of OpenTelemetry with their exporters, which send in threads of their own.

This module imports the SDK, and nothing imports it before a caller has configured an exporter.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any

from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Tracer
from uncaged_bundles.version import __version__

from .settings import TelemetrySettings, as_environment

SCOPE = "uncaged_workflow"
LOGGER = "opentelemetry"
MAX_REMARKS = 20
MAX_REMARK_CHARACTERS = 500


class MissingExporter(Exception):
    """No installed distribution has the exporter, or it is of no use in a worker."""


class DerivedIds(IdGenerator):
    """Ids that the creator of a span has set, by thread."""

    def __init__(self) -> None:
        self._next = threading.local()

    @contextmanager
    def use(self, trace: int, span: int) -> Iterator[None]:
        """Give the span that the block creates these ids."""
        self._next.trace, self._next.span = trace, span
        yield

    def generate_span_id(self) -> int:
        return int(self._next.span)

    def generate_trace_id(self) -> int:
        return int(self._next.trace)


class Pipeline:
    """Providers of one caller's settings. tracer, meter: None if the settings ask for none."""

    def __init__(
        self,
        settings: TelemetrySettings,
        variables: Mapping[str, str],
        remark: Callable[[str], None],
    ) -> None:
        """Args: remark: gets the problems of the exporters, and of one signal if the other is sent.

        Raises:
            MissingExporter: nothing can be sent; a package has to be installed.
        """
        self.ids = DerivedIds()
        self.tracer: Tracer | None = None
        self.meter: Meter | None = None
        self.sampler: Any = None
        self._providers: list[TracerProvider | MeterProvider] = []
        self._remarks = Remarks(remark, settings.confidential)
        listen(self._remarks)
        try:
            with as_environment(variables):
                missing = self._begin(settings, resource_of(variables))
            if self.tracer is None and self.meter is None:
                raise MissingExporter("; ".join(missing.values()))
        except BaseException:
            unlisten(self._remarks)
            raise
        for signal, problem in missing.items():
            remark(f"no {signal} are sent: {problem}")

    def _begin(self, settings: TelemetrySettings, resource: Resource) -> dict[str, str]:
        """Make the providers, and return by signal why one has none."""
        missing: dict[str, str] = {}
        for signal, begin, exporter in (
            ("spans", self._trace, settings.traces),
            ("metrics", self._measure, settings.metrics),
        ):
            if exporter is not None:
                try:
                    begin(exporter, resource)
                except MissingExporter as exc:
                    missing[signal] = str(exc)
        return missing

    def _trace(self, exporter: str, resource: Resource) -> None:
        spans: SpanExporter = exporter_of("traces", exporter)()
        provider = TracerProvider(resource=resource, id_generator=self.ids, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(spans))
        self._providers.append(provider)
        self.sampler = provider.sampler
        self.tracer = provider.get_tracer(SCOPE, __version__)

    def _measure(self, exporter: str, resource: Resource) -> None:
        metrics: MetricExporter = exporter_of("metrics", exporter)()
        reader = PeriodicExportingMetricReader(metrics)
        provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._providers.append(provider)
        self.meter = provider.get_meter(SCOPE, __version__)

    def close(self, timeout_s: float) -> None:
        """Send what is left; what could not be sent in time is lost."""
        closing = [
            threading.Thread(target=provider.shutdown, name="telemetry", daemon=True)
            for provider in self._providers
        ]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(timeout_s / len(closing))
        unlisten(self._remarks)


def exporter_of(signal: str, name: str) -> Callable[[], Any]:
    """Return the class of an exporter, by its entry point."""
    if name == "console":
        raise MissingExporter("the exporter 'console' has no terminal in a worker")
    found = [*entry_points(group=f"opentelemetry_{signal}_exporter", name=name)]
    if not found:
        raise MissingExporter(
            f"the exporter {name!r} of {signal} is not installed; install the package that has it"
        )
    loaded: Callable[[], Any] = found[0].load()
    return loaded


def resource_of(variables: Mapping[str, str]) -> Resource:
    """Return the attributes of this process; those in the variables win."""
    named = "OTEL_SERVICE_NAME" in variables or "service.name=" in variables.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    own = {
        "service.version": __version__,
        "service.instance.id": str(uuid.uuid4()),
        **({} if named else {"service.name": "uncaged-workflow"}),
    }
    return Resource.create(own)


class Remarks(logging.Handler):
    """Handler of the SDK's log that passes each distinct message on once. confidential: values that
    are removed, by each handler: a message does not say which pipeline it is of.
    """

    def __init__(self, remark: Callable[[str], None], confidential: tuple[str, ...]) -> None:
        super().__init__(logging.WARNING)
        self._remark = remark
        self.confidential = confidential
        self._seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg) in self._seen or len(self._seen) >= MAX_REMARKS:
            return
        self._seen.add(str(record.msg))
        text = record.getMessage()
        for handler in logging.getLogger(LOGGER).handlers:
            for value in handler.confidential if isinstance(handler, Remarks) else ():
                text = text.replace(value, "…")
        self._remark(f"OpenTelemetry: {text[:MAX_REMARK_CHARACTERS]}")


def listen(remarks: Remarks) -> None:
    """Send the SDK's log to *remarks* alone: a worker's standard error is the report of its
    death.
    """
    logger = logging.getLogger(LOGGER)
    logger.propagate = False
    logger.addHandler(remarks)


def unlisten(remarks: Remarks) -> None:
    """Send nothing to *remarks* any more."""
    logging.getLogger(LOGGER).removeHandler(remarks)
