"""Queue of actions that need the whole terminal. Threads that show requests put them in; the main
thread performs them between two prompts.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
PAUSE_S = 0.1


class ForegroundQueue:
    """Actions for the main thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Args: wake: interrupts the prompt."""
        self._wake = wake
        self._actions: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return self._actions.empty()

    def put(self, action: Callable[[], object]) -> None:
        """Add an action."""
        self._actions.put(action)
        self._wake()

    def result_of(self, action: Callable[[], T]) -> T:
        """Add an action, wait for it, and return its result, or raise its error."""
        future: Future[T] = Future()

        def perform() -> None:
            try:
                future.set_result(action())
            except BaseException as problem:
                future.set_exception(problem)

        self.put(perform)
        return future.result()

    def run(self) -> None:
        """Perform all actions that wait."""
        with suppress(queue.Empty):
            while True:
                self._actions.get_nowait()()

    def wait_for(self, thread: threading.Thread, interrupt: Callable[[], None]) -> bool:
        """Perform actions until a thread has ended. Ctrl-C calls *interrupt*, and the wait goes on.

        Returns:
            Whether it was interrupted.
        """
        interrupted = False
        while thread.is_alive():
            try:
                thread.join(PAUSE_S)
                self.run()
            except KeyboardInterrupt:
                interrupted = True
                interrupt()
        self.run()
        return interrupted
