"""`/api/threads/{id}`: one thread with its timeline, and two threads side by side."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from uncaged_bundles.errors import DamagedError
from uncaged_engine.api import Engine, ThreadSummary, ThreadView
from uncaged_engine.services.documents import (
    lean_view,
    sides_document,
    summary_document,
    thread_document,
)
from uncaged_engine.services.journal import is_live, plain_of
from uncaged_engine.services.threads import summarise

from ..timelines import read_timeline
from .endpoints import ApiDocument, ApiEndpoint, Asked, Fields
from .summaries import SummaryDocument

MOST_ROWS = 1000


class OpenStepDocument(ApiDocument):
    """Effect that is being performed."""

    seq: str
    kind: str
    label: str
    started_ms: int
    attempt: int


class RowDocument(ApiDocument):
    """Row of a timeline. number: from 1, in the order of the journal."""

    number: int
    seq: str
    mark: str
    kind: str
    label: str
    detail: str
    by: str
    took_ms: int | None
    timestamp: int | None


class RelativeDocument(ApiDocument):
    thread_id: str
    flow: str
    status: str
    seq: int | None = None


class ThreadDocument(SummaryDocument):
    """A thread. readable: False if not even its start can be read; then only the summary's keys
    have values. can: what a person may do with it now.
    """

    readable: bool
    prompt: str
    params: Any
    limits: dict[str, Any]
    agents: Any
    sandbox: str
    workspace: Any
    parent: Any
    source: Any
    children: list[RelativeDocument]
    forks: list[RelativeDocument]
    description: str
    result: Any
    word: str
    ending: str
    details: list[str]
    next: list[str]
    question: dict[str, Any] | None
    can: list[str]
    rows: int
    open: OpenStepDocument | None
    cut: list[dict[str, Any]]


class RowsQuery(Fields):
    after: int = Field(default=0, ge=0)
    limit: int = Field(default=MOST_ROWS, ge=1, le=MOST_ROWS)


class RowsDocument(ApiDocument):
    """place: where the journal ends, from which events go on."""

    place: int
    rows: list[RowDocument]
    total: int
    open: OpenStepDocument | None


class CompareQuery(Fields):
    a: str
    b: str


class SideDocument(ApiDocument):
    thread_id: str
    flow: str
    hash: str
    status: str
    message: str
    steps: int


class ComparisonDocument(ApiDocument):
    """Two threads. together: the number of equal steps at their beginnings. pairs: the steps by
    number.
    """

    together: int
    threads: list[SideDocument]
    pairs: list[list[RowDocument | None]]


def shown(engine: Engine, asked: Asked) -> object:
    place = engine.store.locate_thread(asked.path["id"])
    try:
        found = lean_view(engine.store, place)
    except DamagedError as exc:
        summary = summarise(engine.store, *place)
        return {**_unreadable(summary, str(exc)), "readable": False}
    return {
        **summary_document(found.summary),
        **thread_document(engine.store, place, found),
        "readable": True,
    }


def rows(engine: Engine, asked: Asked) -> object:
    place = engine.store.locate_thread(asked.path["id"])
    found = read_timeline(engine, place)
    after, last = asked.query.after, asked.query.after + asked.query.limit
    return {
        "rows": found.rows[after:last],
        "total": len(found.rows),
        "place": found.place,
        "open": found.count.open_step() if is_live(plain_of(place[2])) else None,
    }


def compared(engine: Engine, asked: Asked) -> object:
    views: list[ThreadView] = [
        lean_view(engine.store, engine.store.locate_thread(text))
        for text in (asked.query.a, asked.query.b)
    ]
    return sides_document(views)


def _unreadable(summary: ThreadSummary, problem: str) -> dict[str, Any]:
    nothing: dict[str, Any] = dict.fromkeys(
        ("params", "agents", "workspace", "parent", "source", "result", "question", "open")
    )
    texts = dict.fromkeys(("prompt", "sandbox", "description", "ending"), "")
    lists: dict[str, Any] = {
        name: [] for name in ("children", "forks", "details", "next", "can", "cut")
    }
    return {
        **summary_document(summary),
        **nothing,
        **texts,
        **lists,
        "problem": problem,
        "limits": {},
        "word": summary.status,
        "rows": 0,
    }


ENDPOINTS = (
    ApiEndpoint(
        method="GET",
        path="/api/threads/{id}",
        summary="One thread: prompt, relatives, question, end",
        handler=shown,
        answer=ThreadDocument,
    ),
    ApiEndpoint(
        method="GET",
        path="/api/threads/{id}/rows",
        summary="Rows of a thread's timeline",
        handler=rows,
        query=RowsQuery,
        answer=RowsDocument,
    ),
    ApiEndpoint(
        method="GET",
        path="/api/compare",
        summary="Where two threads part",
        handler=compared,
        query=CompareQuery,
        answer=ComparisonDocument,
    ),
)
