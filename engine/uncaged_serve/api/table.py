"""All endpoints of the API."""

from __future__ import annotations

from . import events, flows, machine, proposals, session, threads
from .endpoints import ApiEndpoint, EventStream

ENDPOINTS: tuple[ApiEndpoint, ...] = (
    *session.ENDPOINTS,
    *threads.ENDPOINTS,
    *flows.ENDPOINTS,
    *proposals.ENDPOINTS,
    *machine.ENDPOINTS,
)
EVENT_ENDPOINTS: tuple[EventStream, ...] = events.EVENT_ENDPOINTS
