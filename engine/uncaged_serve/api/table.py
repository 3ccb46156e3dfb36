"""All endpoints of the API."""

from __future__ import annotations

from . import (
    events,
    flows,
    machine,
    proposals,
    session,
    steps,
    thread,
    thread_actions,
    thread_events,
    threads,
)
from .endpoints import ApiEndpoint, EventStream

ENDPOINTS: tuple[ApiEndpoint, ...] = (
    *session.ENDPOINTS,
    *threads.ENDPOINTS,
    *thread.ENDPOINTS,
    *thread_actions.ENDPOINTS,
    *steps.ENDPOINTS,
    *flows.ENDPOINTS,
    *proposals.ENDPOINTS,
    *machine.ENDPOINTS,
)
EVENT_ENDPOINTS: tuple[EventStream, ...] = (
    *events.EVENT_ENDPOINTS,
    *thread_events.EVENT_ENDPOINTS,
)
