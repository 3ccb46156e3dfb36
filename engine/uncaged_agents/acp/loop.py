"""Event loop thread: one per process, for asynchronous libraries with synchronous callers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from uncaged_engine.door.effects import Cancel

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
