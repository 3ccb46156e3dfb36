"""Event loop thread, one per worker, for the asynchronous library of the protocol; the wait for
child processes and the reading of their output in it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import IO, Any, TypeVar

from uncaged_engine.door.effects import Cancel
from uncaged_engine.services.processes import Child

TICK_S = 0.05
"""Polling interval on a system without pidfd."""
CHUNK_BYTES = 1 << 16

T = TypeVar("T")


class LoopThread:
    """Event loop in a daemon thread, started at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], cancel: Cancel) -> T:
        """Run *work* in the loop and return its result.

        Args:
            work: gets an event that is set on cancellation; it must then end by itself, and in
                time.
        """
        loop, stopped = self._running(), asyncio.Event()
        with cancel.on_request(lambda: _set(stopped, loop)):
            return asyncio.run_coroutine_threadsafe(work(stopped), loop).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="event-loop", daemon=True
                ).start()
            return self._loop


def _set(event: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
    loop.call_soon_threadsafe(event.set)


LOOP_THREAD = LoopThread()
"""Shared by all threads of a worker."""


async def wait_for_exit(child: Child) -> None:
    """Wait until a child has exited; it is not reaped."""
    with child.exit_handle() as handle:
        if handle is None:
            while child.exit_code is None:
                await asyncio.sleep(TICK_S)
            return
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(handle, event.set)
        try:
            await event.wait()
        finally:
            loop.remove_reader(handle)


async def drain(stream: IO[bytes], take: Callable[[bytes], None]) -> None:
    """Call *take* with each chunk of a pipe until its end, and close it."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), stream
    )
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            take(chunk)
    finally:
        transport.close()
