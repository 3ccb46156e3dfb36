"""Flows and threads through the library's own client, over standard input and output and over
HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client, MCPError
from mcp_types import TextContent, TextResourceContents
from testbed.steering import settle
from uncaged_engine.api import Engine

pytestmark = pytest.mark.slow

Talk = Callable[[Callable[[Client], Awaitable[None]]], None]


def text_of(result: Any) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


class Ear:
    """Hears progress, and when a message came."""

    def __init__(self) -> None:
        self.told: list[tuple[float, str]] = []
        self.step = anyio.Event()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG002 - the protocol's signature
        self.told.append((progress, message or ""))
        if message and message.startswith("step 1"):
            self.step.set()


async def listed(client: Client) -> None:
    """Every enabled flow is a tool, and four are about threads; a flow whose name is taken gets a
    number.
    """
    named = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(named) == [
        "asks",
        "double",
        "forever",
        "raw",
        "run_2",
        "run",
        "status",
        "answer",
        "fork",
    ]
    assert named["double"].description == "Doubles a number."
    assert named["double"].input_schema["properties"] == {
        "n": {"type": "integer", "description": "The number."}
    }
    assert named["status"].annotations is not None
    assert named["status"].annotations.read_only_hint


async def called(client: Client) -> str:
    """Check that a call gives a structured result and reports each step in order, and that a
    failure, wrong arguments and an unknown tool differ.
    """
    ear = Ear()
    done = await client.call_tool("double", {"n": 21}, progress_callback=ear)
    found: Any = done.structured_content
    assert (done.is_error, found["status"], found["success"], found["data"]) == (
        False,
        "completed",
        True,
        {"double": 42},
    )
    assert json.loads(text_of(done)) == found
    assert [progress for progress, _ in ear.told] == list(range(len(ear.told)))
    steps = [
        "step 1: block 1 of 2: null",
        "step 1: done",
        "step 2: null",
        "step 2: done",
        "completed: twice 21",
    ]
    assert [message for _, message in ear.told] == [f"thread {found['threadId']} of double", *steps]
    assert text_of(await client.call_tool("raw", {})) == "word for word"
    assert "the flow called run" in text_of(await client.call_tool("run_2", {}))
    failed: Any = await client.call_tool("double", {"n": 13})
    assert (failed.is_error, failed.structured_content["success"]) == (True, False)
    wrong = await client.call_tool("double", {"m": 1})
    assert (wrong.is_error, text_of(wrong)) == (
        True,
        "the tool double has no argument 'm'; it has: n",
    )
    with pytest.raises(MCPError, match="there is no tool 'off'"):
        await client.call_tool("off", {})
    return str(found["threadId"])


async def steered(client: Client, engine: Engine, thread: str) -> None:
    """A thread is started, looked at, answered and forked; what does not fit is an error of the
    tool.
    """

    async def use(name: str, **arguments: object) -> Any:
        return await client.call_tool(name, arguments)

    asked = await use("run", flow="asks")
    assert (asked.is_error, asked.structured_content["status"]) == (False, "waiting")
    waiting = asked.structured_content["threadId"]
    status = (await use("status", thread=waiting, records=1)).structured_content
    assert (status["question"]["question"], status["question"]["schema"]) == (
        "Which number?",
        {"type": "integer"},
    )
    assert len(status["records"]) == 1
    misfit = await use("answer", thread=waiting, answer="x")
    assert misfit.is_error
    assert "does not fit" in text_of(misfit)
    assert (await use("answer", thread=waiting, answer=7)).structured_content["data"] == 7
    forked = (await use("fork", thread=thread, at=1, outcome=5)).structured_content
    assert forked["data"] == {"double": 10}
    assert forked["threadId"] != thread
    begun = (await use("run", flow="double", params={"n": 1}, wait=False)).structured_content
    assert begun["status"] == "running"
    assert (await anyio.to_thread.run_sync(settle, engine, begun["threadId"]))[
        "status"
    ] == "completed"
    nonsense = await use("fork", thread=thread, at=-1)
    assert nonsense.is_error
    assert "at: -1 is less than the minimum" in text_of(nonsense)


async def read(client: Client, engine: Engine, thread: str) -> None:
    """Threads are resources, newest first, each a JSON document."""
    found = (await client.list_resources()).resources
    assert [one.uri.rpartition("/")[2] for one in found] == [
        one.thread_id for one in engine.threads()
    ]
    [content] = (await client.read_resource(f"uncaged-workflow://threads/{thread}")).contents
    assert isinstance(content, TextResourceContents)
    document = json.loads(content.text)
    assert document["thread"]["data"] == {"double": 42}
    assert document["records"][0]["intent"] == {"null": {"value": 21, "label": "block 1 of 2"}}
    [template] = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "uncaged-workflow://threads/{thread}"
    with pytest.raises(MCPError, match="no thread"):
        await client.read_resource("uncaged-workflow://threads/01ZZZZZZZZ")


async def cancelled(client: Client, engine: Engine) -> None:
    """A client that gives up a call ends its thread; other calls of the same connection go on."""
    ear = Ear()
    async with anyio.create_task_group() as group:

        async def call() -> None:
            await client.call_tool("forever", {}, progress_callback=ear)

        group.start_soon(call)
        await ear.step.wait()
        group.cancel_scope.cancel()
    [thread] = engine.threads("forever")
    assert (await anyio.to_thread.run_sync(settle, engine, thread.thread_id))["status"] == "killed"
    again: Any = await client.call_tool("double", {"n": 2})
    assert again.structured_content["data"] == {"double": 4}


def test_a_client_lists_calls_steers_reads_and_cancels(filled: Engine, talk: Talk) -> None:
    """The same conversation works over each transport."""

    async def conversation(client: Client) -> None:
        await listed(client)
        thread = await called(client)
        await steered(client, filled, thread)
        await read(client, filled, thread)
        await cancelled(client, filled)

    talk(conversation)
