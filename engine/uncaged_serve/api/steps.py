"""`/api/threads/{id}/steps`: one step in full, and the blobs that a thread's journal names."""

from __future__ import annotations

import os
import re
from typing import Any

from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_engine.api import Engine
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.services.documents import StepReader, lean_view
from uncaged_engine.services.journal import journal_bytes

from ..images import media_type
from .endpoints import ApiDocument, ApiEndpoint, Asked, Bytes
from .thread import RowDocument

HASH = re.compile(r"[0-9a-f]{32}")


class PromptDocument(ApiDocument):
    title: str
    text: str


class PictureDocument(ApiDocument):
    hash: str | None
    problem: str | None


class LineDocument(ApiDocument):
    """Line of the journal. follows: it continues the chain."""

    number: int
    text: str
    follows: bool


class StepDocument(ApiDocument):
    """A step. more: keys of its record without a place of their own. cut: what is shown in part."""

    thread_id: str
    place: str
    kind: str
    mark: str
    label: str
    by: str
    started_ms: int | None
    took_ms: int | None
    answer: str | None
    data: Any
    error: Any
    prompts: list[PromptDocument]
    effect: Any
    more: dict[str, Any]
    attempts: list[dict[str, Any]]
    voids: list[dict[str, Any]]
    usage: Any
    pictures: list[PictureDocument]
    parts: list[RowDocument]
    blobs: list[dict[str, Any]]
    trace: dict[str, Any] | None
    changes: dict[str, Any] | None
    lines: list[LineDocument]
    cut: list[dict[str, Any]]


def step(engine: Engine, asked: Asked) -> object:
    place = engine.store.locate_thread(asked.path["id"])
    bundle, thread, path = place
    data = journal_bytes(path)
    try:
        start = lean_view(engine.store, place).start
    except DamagedError:
        start = {}  # its lines are shown all the same
    reader = StepReader(
        engine.store, bundle, thread, data, start=start, environment=dict(os.environ)
    )
    return reader.read(asked.path["place"])


def blob(engine: Engine, asked: Asked) -> object:
    _, thread, path = engine.store.locate_thread(asked.path["id"])
    name = asked.path["digest"]
    if not HASH.fullmatch(name) or name.encode() not in journal_bytes(path):
        raise NotFoundError(f"thread {thread} names no blob {name[:40]!r}")
    try:
        data = BlobDirectory(engine.store.blobs).get(name)
    except DamagedError as exc:
        raise NotFoundError(str(exc)) from exc
    return Bytes(data=data, media_type=media_type(data), name=f"{name}.bin")


ENDPOINTS = (
    ApiEndpoint(
        method="GET",
        path="/api/threads/{id}/steps/{place}",
        summary="One step in full; its place is 3, or 3.1 for a part of step 3",
        handler=step,
        answer=StepDocument,
    ),
    ApiEndpoint(
        method="GET",
        path="/api/threads/{id}/blobs/{digest}",
        summary="A blob that the thread's journal names",
        handler=blob,
    ),
)
