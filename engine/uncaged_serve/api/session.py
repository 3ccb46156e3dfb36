"""`/api/session`: the server as a page has to know it."""

from __future__ import annotations

from uncaged_bundles.version import __version__
from uncaged_engine.api import Engine

from .endpoints import ApiDocument, ApiEndpoint, Asked


class SessionDocument(ApiDocument):
    """shared: several machines share the store, and workers on any of them run its threads."""

    version: str
    routes: list[str]
    read_only: bool
    shared: bool
    now_ms: int


def session(engine: Engine, asked: Asked) -> object:
    return {
        "version": __version__,
        "routes": list(asked.session.routes),
        "readOnly": asked.session.read_only,
        "shared": engine.is_shared,
        "nowMs": engine.clock_ms(),
    }


ENDPOINTS = (
    ApiEndpoint(
        method="GET",
        path="/api/session",
        summary="Version, routes and rights of this server",
        handler=session,
        answer=SessionDocument,
    ),
)
