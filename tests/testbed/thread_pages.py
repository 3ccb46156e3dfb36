"""Threads for tests of the page of one thread: a flow that asks, and journals made by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uncaged_bundles.ids import ThreadId, new_thread_id
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_serve.api.endpoints import ApiEndpoint, Asked, Fields
from uncaged_serve.api.table import ENDPOINTS

from .journals import NOW_MS, Script
from .processes import end_workers

FLOW = b"""
descriptor = {
    "contract": 1, "name": "asks", "description": "Ask for a number.", "kind": "task",
    "policy": {"ask": {}, "null": {}},
}
SCHEMA = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1}, "why": {"type": "string"}},
    "required": ["count"],
}


def run(input, options):
    name = yield {"null": {"value": input["prompt"]}}
    answer = yield {"ask": {"question": "how many?", "schema": SCHEMA}}
    for number in range(answer["count"]):
        yield {"null": {"value": number}}
    return {"success": True, "message": f"{name} {answer['count']}"}
"""
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script></script>\u202egnp.exe"


@contextmanager
def asking_store(root: Path) -> Iterator[Engine]:
    """A store with the flow `asks`; its workers are ended afterwards."""
    engine = Engine(Store.open(root))
    engine.add("asks", FLOW, accept=bool)
    try:
        yield engine
    finally:
        end_workers(root)


def waiting_thread(engine: Engine, prompt: str = "hello") -> ThreadId:
    """Start a thread, and return it when it asks."""
    thread = engine.run("asks", prompt=prompt)
    until_stopped(engine, thread)
    return thread


def until_stopped(engine: Engine, thread: str) -> str:
    """Wait until a thread has stopped; return its status."""
    return str(
        [event for event in engine.follow(thread) if event.kind == "status"][-1].body["status"]
    )


def put_journal(engine: Engine, number: int, script: Script | None = None) -> Script:
    """Begin a journal of the flow, or put a finished one into the store. number: tells the threads
    of a store apart.
    """
    flow = engine.registry.flow("asks")
    assert flow is not None
    thread = new_thread_id(NOW_MS + number, b"0123456789")
    if script is None:
        return Script.begun(flow.hash, thread, prompt=HOSTILE, params={HOSTILE: HOSTILE})
    path = engine.store.data_path(flow.hash, script.thread)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(script.data)
    engine.store.note_start(script.thread)
    return script


def hostile_journal(engine: Engine, number: int = 1) -> ThreadId:
    """Put a failed thread into the store that has markup in every field."""
    script = put_journal(engine, number)
    exchange = {"method": HOSTILE, "url": "javascript:alert(3)", "headers": {HOSTILE: HOSTILE}}
    script.done(1, {"http": exchange}, outcome={"status": HOSTILE, "text": HOSTILE})
    script.intent(2, {"role": {"name": HOSTILE, "prompt": HOSTILE}})
    script.step(
        2, role=HOSTILE, content=HOSTILE, meta={"status": HOSTILE, HOSTILE: HOSTILE}, by=HOSTILE
    )
    script.done(3, {"script": {"script": HOSTILE}}, error={"kind": HOSTILE, "message": HOSTILE})
    script.end("failed", error={"kind": HOSTILE, "message": HOSTILE})
    return put_journal(engine, number, script).thread


def long_journal(engine: Engine, steps: int, number: int = 2) -> Script:
    """Put a thread with that many steps into the store, which nothing drives."""
    script = put_journal(engine, number)
    add_steps(script, range(1, steps + 1))
    return put_journal(engine, number, script)


def add_steps(script: Script, numbers: range) -> None:
    for seq in numbers:
        effect = {"http": {"method": "GET", "url": f"https://example.org/{seq}"}}
        script.done(seq, effect, outcome={"status": 200, "text": f"answer {seq} " * 20})


def called(
    engine: Engine,
    method: str,
    path: str,
    values: Mapping[str, str],
    more: dict[str, Any] | None = None,
) -> tuple[Any, ApiEndpoint]:
    """Call the handler of an endpoint. values: of the path's braces. more: its query or body."""
    [endpoint] = [one for one in ENDPOINTS if (one.method, one.path) == (method, path)]
    asked = Asked(
        path=values,
        query=_read(endpoint.query, more),
        body=_read(endpoint.body, more),
    )
    return endpoint.handler(engine, asked), endpoint


def _read(fields: type[Fields] | None, more: dict[str, Any] | None) -> Fields | None:
    return None if fields is None else fields.model_validate(more or {})
