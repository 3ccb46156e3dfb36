"""Threads as resources: pages, and documents that never grow too large."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import TextResourceContents
from testbed.bundles import place
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, ThreadView
from uncaged_tools.mcp.resources import (
    MOST_CHARACTERS,
    PAGE,
    PREFIX,
    list_threads,
    read_thread,
    thread_json,
)


def test_threads_come_in_pages(engine: Engine) -> None:
    """Newest first, each once, and a last page without a cursor."""
    for number in range(PAGE + 3):
        place(engine.store, number=number)
    first = list_threads(engine, None)
    assert len(first.resources) == PAGE
    second = list_threads(engine, first.next_cursor)
    assert (len(second.resources), second.next_cursor) == (3, None)
    uris = [one.uri for one in (*first.resources, *second.resources)]
    assert uris == [f"{PREFIX}{one.thread_id}" for one in engine.threads()]
    assert len(set(uris)) == PAGE + 3
    with pytest.raises(MCPError, match="no place in a list"):
        list_threads(engine, "0")


def test_a_long_thread_keeps_its_last_records(engine: Engine) -> None:
    """The number of omitted records is in the document."""
    view = engine.thread(place(engine.store).thread)
    records: list[dict[str, Any]] = [
        {"seq": number, "outcome": "x" * 100_000} for number in range(1, 101)
    ]
    long = ThreadView(summary=view.summary, start=view.start, records=records, end=None)
    text = thread_json(long)
    document = json.loads(text)
    assert len(text) < MOST_CHARACTERS + 200_000
    assert document["records"][-1]["seq"] == 100
    assert document["leftOut"] + len(document["records"]) == 100
    assert document["leftOut"] > 50
    assert "leftOut" not in json.loads(thread_json(view))


@pytest.mark.parametrize(
    "uri", ["file:///etc/passwd", f"{PREFIX}nonsense", f"{PREFIX}../../x", PREFIX]
)
def test_what_is_no_thread_is_refused(engine: Engine, uri: str) -> None:
    """An error of the protocol that says what there is."""
    place(engine.store, number=1)
    place(engine.store, number=2)
    with pytest.raises(MCPError):
        read_thread(engine, uri)


def test_a_thread_is_read_by_latest(engine: Engine) -> None:
    """The words that a person may use work here as well."""
    placed = place(engine.store)
    [content] = read_thread(engine, f"{PREFIX}latest").contents
    assert isinstance(content, TextResourceContents)
    assert json.loads(content.text)["start"]["threadId"] == ThreadId(placed.thread)
