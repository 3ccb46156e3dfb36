"""Entry point of the observer that sends spans and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncaged_engine.door.observing import (
    ObservedThread,
    Observer,
    ObserverRequest,
    ThreadObserver,
)

from .settings import TelemetrySettings

if TYPE_CHECKING:
    from .pipeline import Pipeline

NOT_SENT = "no spans and metrics are sent: {}"
INSTALL = "pip install 'uncaged-workflow[otel]'"


def observer(request: ObserverRequest) -> Observer | None:
    """Return the observer for the caller's variables; None if they ask for nothing to be sent, or
    if a package is missing.
    """
    settings = TelemetrySettings.of(request.variables)
    if settings is None:
        return None
    try:
        from .pipeline import MissingExporter, Pipeline
    except ImportError as exc:
        request.remark(NOT_SENT.format(f"the module {exc.name} is missing; {INSTALL}"))
        return None
    try:
        return TelemetryObserver(settings, Pipeline(settings, request.variables, request.remark))
    except MissingExporter as exc:
        request.remark(NOT_SENT.format(exc))
        return None


class TelemetryObserver:
    """Observer of the threads whose callers have the same settings."""

    def __init__(self, settings: TelemetrySettings, pipeline: Pipeline) -> None:
        from .metrics import Instruments

        self._settings = settings
        self._pipeline = pipeline
        self._instruments = None if pipeline.meter is None else Instruments(pipeline.meter)

    def thread(self, thread: ObservedThread) -> ThreadObserver:
        from .spans import SpanSender
        from .thread import ThreadTelemetry

        sender = SpanSender(self._pipeline, thread.thread_id, propagates=self._settings.propagates)
        return ThreadTelemetry(thread, sender, self._instruments, content=self._settings.content)

    def close(self, timeout_s: float) -> None:
        self._pipeline.close(timeout_s)
