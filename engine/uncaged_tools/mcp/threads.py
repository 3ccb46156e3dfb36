"""MCP tools for threads: run, status, answer and fork, in one literal table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
from mcp.server.session import ServerSession
from uncaged_bundles.errors import UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.schemas import misfits
from uncaged_engine.api import Cut, Engine, Replacement, ThreadView
from uncaged_engine.services.threads import question

from ..flows import result_of_thread
from .following import start_and_wait, wait

MOST_RECORDS = 1000


def _object(required: list[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


THREAD = {
    "type": "string",
    "minLength": 1,
    "description": "A thread's id, a unique beginning of one, or 'latest'.",
}
WAIT = {
    "type": "boolean",
    "default": True,
    "description": "Wait until the thread stops. If false, its id comes back at once.",
}
WHOLE = {"type": "integer", "minimum": 0}

Perform = Callable[[Engine, Mapping[str, Any], ServerSession], Awaitable[dict[str, object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadTool:
    """Tool for threads. changes: it changes something, so that a client may ask its user first."""

    description: str
    schema: Mapping[str, Any]
    perform: Perform
    changes: bool = True


async def run(
    engine: Engine, arguments: Mapping[str, Any], session: ServerSession
) -> dict[str, object]:
    def start() -> ThreadId:
        return engine.run(
            arguments["flow"],
            prompt=arguments.get("prompt", ""),
            params=arguments.get("params", {}),
        )

    if not arguments.get("wait", True):
        return running_document(await anyio.to_thread.run_sync(start))
    return (await start_and_wait(start, engine, session, what=arguments["flow"])).document()


async def status(
    engine: Engine, arguments: Mapping[str, Any], _session: ServerSession
) -> dict[str, object]:
    return await anyio.to_thread.run_sync(
        lambda: thread_document(engine.thread(arguments["thread"]), arguments.get("records", 0))
    )


async def answer(
    engine: Engine, arguments: Mapping[str, Any], session: ServerSession
) -> dict[str, object]:
    thread = await anyio.to_thread.run_sync(
        lambda: engine.answer(arguments["thread"], arguments["answer"])
    )
    if not arguments.get("wait", True):
        return running_document(thread)
    return (await wait(engine, thread, session)).document()


async def fork(
    engine: Engine, arguments: Mapping[str, Any], session: ServerSession
) -> dict[str, object]:
    def start() -> ThreadId:
        instead = Replacement(arguments["outcome"]) if "outcome" in arguments else None
        return engine.fork(
            arguments["thread"],
            cut=Cut(at=arguments.get("at")),
            on=arguments.get("on"),
            instead=instead,
        )

    if not arguments.get("wait", True):
        return running_document(await anyio.to_thread.run_sync(start))
    return (
        await start_and_wait(start, engine, session, what=f"a fork of {arguments['thread']}")
    ).document()


THREAD_TOOLS: Mapping[str, ThreadTool] = {
    "run": ThreadTool(
        description="Start a thread of a flow. Use it instead of the flow's own tool when it takes long and you do not want to wait.",
        schema=_object(
            ["flow"],
            flow={"type": "string", "minLength": 1, "description": "The name of a flow."},
            prompt={
                "type": "string",
                "description": "The task, in words, for flows that read one.",
            },
            params={"type": "object", "description": "The flow's parameters."},
            wait=WAIT,
        ),
        perform=run,
    ),
    "status": ThreadTool(
        description="Tell how a thread stands: its status, its result, and what it asks if it waits for an answer.",
        schema=_object(
            ["thread"],
            thread=THREAD,
            records={**WHOLE, "maximum": MOST_RECORDS, "description": "Show the last records too."},
        ),
        perform=status,
        changes=False,
    ),
    "answer": ThreadTool(
        description="Answer a thread that waits for a person, and let it go on. Ask your person first.",
        schema=_object(
            ["thread", "answer"],
            thread=THREAD,
            answer={"description": "What is asked; status tells its form."},
            wait=WAIT,
        ),
        perform=answer,
    ),
    "fork": ThreadTool(
        description="Start a new thread from the first steps of another one, without performing them again.",
        schema=_object(
            ["thread"],
            thread=THREAD,
            at={**WHOLE, "description": "How many steps are kept; all but the last if left out."},
            on={
                "type": "string",
                "description": "Go on with another version: a hash, a flow's name, or 'head'.",
            },
            outcome={"description": "Takes the place of the last kept step's outcome."},
            wait=WAIT,
        ),
        perform=fork,
    ),
}


async def use(
    engine: Engine, name: str, arguments: Mapping[str, Any], session: ServerSession
) -> dict[str, object]:
    """Use one of the tools.

    Raises:
        UsageError: the arguments do not fit. UncagedError: what the engine says.
    """
    tool = THREAD_TOOLS[name]
    if problems := misfits(tool.schema, dict(arguments), "arguments"):
        raise UsageError(f"{name}: {'; '.join(problems)}")
    return await tool.perform(engine, arguments, session)


def running_document(thread: ThreadId) -> dict[str, object]:
    return {
        "threadId": thread,
        "status": "running",
        "success": False,
        "message": "it was started; ask for its status",
        "data": None,
    }


def thread_document(view: ThreadView, records: int) -> dict[str, object]:
    """Return a thread as JSON, with its last *records*."""
    summary = view.summary
    result = result_of_thread(summary.thread_id, summary.status, summary.message, view.end)
    fields = {
        **result.document(),
        "flow": summary.name,
        "hash": summary.hash,
        "steps": summary.steps,
    }
    if summary.status == "waiting":
        question_record = question(view.records) or {}
        fields["question"] = {
            key: value
            for key, value in question_record.items()
            if key not in ("control", "timestamp", "seq")
        }
    if view.failure is not None:
        fields["failure"] = view.failure.document()
    if records:
        fields["records"] = view.records[-records:]
    return fields
