"""Threads followed in the event loop of the MCP server: progress per step, and an end when the
client cancels its call.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.session import ServerSession
from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, Event
from uncaged_engine.services.threads import effect_label, intended

from ..flows import FlowResult, result_of_thread


async def start_and_wait(
    start: Callable[[], ThreadId], engine: Engine, session: ServerSession, *, what: str
) -> FlowResult:
    """Start a thread and wait until it stops; a call that is cancelled ends what it started.

    Args:
        start: blocks until the thread exists. what: named in the first progress message.
    """
    thread = await anyio.to_thread.run_sync(start)
    try:
        return await wait(engine, thread, session, opening=f"thread {thread} of {what}")
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(end, engine, thread)
        raise


async def wait(
    engine: Engine, thread: ThreadId, session: ServerSession, *, opening: str = ""
) -> FlowResult:
    """Follow a thread until it stops and report each of its steps as progress."""
    reports = 0
    status, message, ended = "", "", None
    if opening:
        await session.report_progress(reports, message=opening)
    async with aclosing(events_of(engine, thread)) as events:
        async for event in events:
            if event.kind == "status":
                status, message = str(event.body["status"]), str(event.body["message"])
            elif event.kind == "record" and "end" in event.body:
                ended = event.body
            progress = progress_message(event)
            if progress:
                reports += 1
                await session.report_progress(reports, message=progress)
    return result_of_thread(thread, status, message, ended)


async def events_of(engine: Engine, thread: ThreadId) -> AsyncGenerator[Event, None]:
    """Yield the events of a thread. A system thread reads them and ends with it, or soon after the
    caller stops.
    """
    send, receive = anyio.create_memory_object_stream[Event | UncagedError](math.inf)
    loop = asyncio.get_running_loop()
    threading.Thread(
        target=_pump, args=(engine, thread, loop, send), name=f"follow-{thread}", daemon=True
    ).start()
    async with receive:
        async for event in receive:
            if isinstance(event, UncagedError):
                raise event
            yield event


def _pump(
    engine: Engine,
    thread: ThreadId,
    loop: asyncio.AbstractEventLoop,
    send: MemoryObjectSendStream[Event | UncagedError],
) -> None:
    """Hand events to the loop until there are no more, or the loop is closed."""
    with suppress(RuntimeError):  # the loop is closed
        try:
            for event in engine.follow(thread):
                loop.call_soon_threadsafe(_put, send, event)
        except UncagedError as exc:
            loop.call_soon_threadsafe(_put, send, exc)
        loop.call_soon_threadsafe(send.close)


def _put(send: MemoryObjectSendStream[Event | UncagedError], event: Event | UncagedError) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the call was cancelled
        send.send_nowait(event)


def end(engine: Engine, thread: ThreadId) -> None:
    """Kill a thread, if it runs."""
    with suppress(UncagedError):  # it ended by itself
        engine.kill(thread)


def progress_message(event: Event) -> str:
    """Return the progress message for an event, such as an effect and its outcome; "" if there is
    none.
    """
    body = event.body
    match event.kind:
        case "progress":
            return str(body.get("text") or "")
        case "status":
            return f"{body['status']}{': ' if body['message'] else ''}{body['message']}"
        case "record":
            pass
    if "intent" in body:
        return f"step {body['seq']}: {effect_label(*intended(body['intent']))}"
    if "attempt" in body:
        return f"step {body['seq']}: attempt {body['attempt']}"
    if "notified" in body:
        return ""
    if "control" in body:
        return str(body.get("question") or body["control"])
    if "seq" in body and "sub" not in body:
        error = body.get("error")
        return f"step {body['seq']}: {'done' if error is None else f'failed: {_message(error)}'}"
    return ""


def _message(error: Any) -> str:
    return (
        str(error.get("message") or error.get("kind")) if isinstance(error, Mapping) else str(error)
    )
