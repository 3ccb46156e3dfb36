"""Libraries that are asynchronous live in one event loop of the process, in a thread of its own, and synchronous callers wait beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ..door.effects import Cancel

T = TypeVar("T")


class LoopThread:
    """The loop and its thread; started on first use, there as long as the process is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Callable[[asyncio.Event], Coroutine[Any, Any, T]], cancel: Cancel) -> T:
        """Do *work* in the loop and wait for what it comes to.

        Args:
            work: gets an event that is set once somebody asks to stop; it has to end by itself then, and in time.
        """
        loop, stopped = self._running(), asyncio.Event()
        with cancel.on_request(lambda: _tell(loop, stopped)):
            return asyncio.run_coroutine_threadsafe(work(stopped), loop).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="event-loop", daemon=True).start()
            return self._loop


def _tell(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    loop.call_soon_threadsafe(event.set)


LOOP_THREAD = LoopThread()
"""One for all threads of a worker."""
