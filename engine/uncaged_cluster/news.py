"""News of turns for workers: when to look for threads that wait, and how often DBOS looks for those
that were taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .notifications import Notifications, Subscription
from .session import DatabaseSession

LOOK_S = 1.0
"""How often a worker looks for turns without any news: of limits that no longer hold, or of a
process that died before it could tell.
"""
LEAST_S = 0.2
"""Least time between two looks for submitted turns: each notification reaches all workers."""
OFTEN_S, SELDOM_S = 0.05, 0.5
"""How often DBOS asks for workflows of a worker, while it takes threads and else. DBOS cannot be
notified of them.
"""
OFTEN_FOR_S = 5.0


class TurnNews:
    """The channel of a schema that tells of turns which wait."""

    def __init__(self, session: DatabaseSession, notifications: Notifications) -> None:
        self._session = session
        self._notifications = notifications
        self._channel = session.channel("turns", 0)

    def tell(self) -> None:
        """Tell all workers that a turn waits, which must be committed."""
        self._session.query("SELECT pg_notify(%s, '')", [self._channel])

    def follow(self) -> TurnWaiting:
        """Return what a worker waits with, until its process ends."""
        return TurnWaiting(self._notifications.subscribe(self._channel))


class TurnWaiting:
    """What a worker waits for between two looks for turns."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._has_room = threading.Event()

    def note_room(self) -> None:
        """Note that a slot of this worker is free again. It may be called from any thread."""
        self._has_room.set()
        self._subscription.wake()

    def wait(self, looked_s: float, *, again: bool) -> None:
        """Return once there is news, or `LOOK_S` after this call.

        Args:
            looked_s: when the worker looked last, by `time.monotonic`. again: it could not look,
                and is to try again as after news.
        """
        if again or self._subscription.wait(LOOK_S):
            self._has_room.wait(max(0.0, looked_s + LEAST_S - time.monotonic()))
        self._has_room.clear()


class PollingPace:
    """How often DBOS asks for the workflows of one worker."""

    def __init__(self, change: Callable[[float], None]) -> None:
        """
        Args:
            change: changes the interval in seconds, which is `SELDOM_S` at first.
        """
        self._change = change
        self._until_s: float | None = None

    def note(self, *, took: bool) -> None:
        """Note whether a look for turns took some."""
        now_s = time.monotonic()
        if took:
            was_seldom, self._until_s = self._until_s is None, now_s + OFTEN_FOR_S
            if was_seldom:
                self._change(OFTEN_S)
        elif self._until_s is not None and now_s > self._until_s:
            self._until_s = None
            self._change(SELDOM_S)
