"""All endpoints of the API."""

from __future__ import annotations

from . import session, threads
from .endpoints import ApiEndpoint, EventStream

ENDPOINTS: tuple[ApiEndpoint, ...] = (*session.ENDPOINTS, *threads.ENDPOINTS)
EVENT_ENDPOINTS: tuple[EventStream, ...] = ()
