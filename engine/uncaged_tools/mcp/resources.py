"""Threads as MCP resources: start, records and end as one JSON document of bounded size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from uncaged_bundles.errors import UncagedError
from uncaged_engine.api import Engine, ThreadView

from .threads import thread_document

PREFIX = "uncaged-workflow://threads/"
JSON = "application/json"
PAGE = 50
MOST_CHARACTERS = 4_000_000


def list_threads(engine: Engine, cursor: str | None) -> ListResourcesResult:
    """Return one page of threads, those started last first."""
    try:
        page = engine.page(before=cursor, limit=PAGE)
    except UncagedError as exc:
        raise MCPError(INVALID_PARAMS, str(exc)) from exc
    resources = [
        Resource(
            uri=f"{PREFIX}{thread.thread_id}",
            name=thread.thread_id,
            title=f"{thread.name or 'a thread'}, {thread.status}",
            description=(thread.problem or thread.message)[:500],
            mime_type=JSON,
        )
        for thread in page.threads
    ]
    return ListResourcesResult(resources=resources, next_cursor=page.before)


def list_templates() -> ListResourceTemplatesResult:
    template = ResourceTemplate(
        uri_template=f"{PREFIX}{{thread}}",
        name="thread",
        title="A thread",
        description="A thread by its id, a unique beginning of one, or 'latest': start, records, end.",
        mime_type=JSON,
    )
    return ListResourceTemplatesResult(resource_templates=[template])


def read_thread(engine: Engine, uri: str) -> ReadResourceResult:
    """Return a thread by its address; MCPError if there is none."""
    if not uri.startswith(PREFIX):
        raise MCPError(INVALID_PARAMS, f"there is no resource {uri!r}; threads are {PREFIX}ID")
    try:
        text = thread_json(engine.thread(uri.removeprefix(PREFIX)))
    except UncagedError as exc:
        raise MCPError(INVALID_PARAMS, str(exc)) from exc
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=JSON, text=text)])


def thread_json(view: ThreadView) -> str:
    """Return a thread as JSON text; if it is too long, the last records."""
    records: list[Mapping[str, Any]] = []
    room = MOST_CHARACTERS
    for record in reversed(view.records):
        room -= len(json.dumps(record))
        if room < 0:
            break
        records.insert(0, record)
    left_out = len(view.records) - len(records)
    document = {
        "thread": thread_document(view, 0),
        "start": view.start,
        "records": records,
        **({"leftOut": left_out} if left_out else {}),
    }
    return json.dumps(document, ensure_ascii=False, indent=1)
