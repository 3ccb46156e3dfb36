"""`/api/threads`: the list of threads."""

from __future__ import annotations

from uncaged_engine.api import Engine
from uncaged_engine.services.documents import summary_document

from .endpoints import ApiEndpoint, Asked, Fields

MOST = 200


class ListQuery(Fields):
    limit: int = 50


def listed(engine: Engine, asked: Asked) -> object:
    return {
        "threads": [
            summary_document(one) for one in engine.threads()[: min(asked.query.limit, MOST)]
        ]
    }


ENDPOINTS = (
    ApiEndpoint(
        method="GET",
        path="/api/threads",
        summary="Threads, those started last first",
        handler=listed,
        query=ListQuery,
    ),
)
