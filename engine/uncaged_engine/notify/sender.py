"""Queue of deliveries beside the threads of a worker: a few at once, and none that a thread waits
for.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from ..door.effects import Cancel

Delivery = Callable[[Cancel], None]
"""Delivers one notification, and handles its own errors."""
AT_ONCE = 2
MOST_WAITING = 1_000
END_S = 5.0


class Sender:
    """Deliveries of one process. `send` may be called from any thread, and does not block."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Delivery] = deque()
        self._cancel = Cancel()
        self._threads: set[threading.Thread] = set()

    @property
    def is_busy(self) -> bool:
        """Whether a delivery is under way or waits."""
        with self._lock:
            return bool(self._threads)

    def send(self, delivery: Delivery) -> bool:
        """Deliver in another thread; return False if too many wait, or no thread can be started."""
        with self._lock:
            if len(self._waiting) >= MOST_WAITING:
                return False
            self._waiting.append(delivery)
            if len(self._threads) >= AT_ONCE:
                return True
            thread = threading.Thread(target=self._work, name="notify", daemon=True)
            self._threads.add(thread)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more threads
                self._threads.discard(thread)
                if not self._threads:
                    self._waiting.clear()
                    return False
            return True

    def close(self) -> None:
        """Cancel the deliveries under way, which ends their processes, and drop the others."""
        with self._lock:
            self._waiting.clear()
            threads = list(self._threads)
        self._cancel.request()
        for thread in threads:
            thread.join(END_S)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads.discard(threading.current_thread())
                    return
                delivery = self._waiting.popleft()
            try:
                delivery(self._cancel)
            except BaseException:  # a bug: the place of this thread is for another one
                with self._lock:
                    self._threads.discard(threading.current_thread())
                raise
