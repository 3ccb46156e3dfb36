"""Threads of called flows, found by what a trace says of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from testbed.bundles import COUNT, MARKED, granted
from testbed.steering import finish
from testbed.traced_calls import trace_of
from uncaged_capture.calls import calls_of
from uncaged_capture.flow_calls import FlowThreads, flow_tools
from uncaged_engine.api import Engine

pytestmark = pytest.mark.slow


def found(engine: Engine, tool: str, result: Any) -> list[str]:
    """Return the threads that are found for one call of a tool with a result."""
    trace = trace_of((tool, {"n": 2}, json.dumps(result)))
    tools = flow_tools(engine)
    calls = calls_of(trace, flows={name: one.flow for name, one in tools.items()})
    view = engine.threads()[0]
    threads = FlowThreads.of(engine, engine.thread(view.thread_id), trace, calls, tools)
    return [str(one.summary.thread_id) for one in threads.threads.values()]


def test_a_result_of_the_mcp_server_names_its_thread(engine: Engine) -> None:
    """The thread counts if it ran the flow that was called, with success."""
    for text in (COUNT, MARKED):
        granted(engine.store, text)
    thread = engine.run("count", prompt="", params={"n": 2})
    result = finish(engine, thread)
    document = {"threadId": thread, "status": "completed", "success": True, "data": None, **result}
    assert found(engine, "mcp__uncaged-workflow__count", document) == [thread]
    assert found(engine, "mcp__uncaged-workflow__marked", document) == []
    assert found(engine, "mcp__uncaged-workflow__count", {**document, "threadId": "0" * 26}) == []
    assert found(engine, "mcp__uncaged-workflow__count", {**document, "threadId": "../x"}) == []
    assert found(engine, "mcp__other__count", document) == []
