"""Progress of effects in flight, on its way from a worker to the followers of its threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import ThreadId

from .dispatch import Report

SEND_S = 1.0
"""Interval between two sendings; each is one statement for all threads of a worker."""
MOST_REPORTS = 20
"""Newest reports of a thread that are kept for the next sending."""
MOST_CHARACTERS = 300
"""Longest text in a report; followers show one line."""


class ProgressSender:
    """Reports of this process's effects, sent together. It may be called from any thread of
    execution, and never waits for the store.
    """

    def __init__(self, send: Callable[[Mapping[ThreadId, Sequence[Report]]], None]) -> None:
        self._send = send
        self._waiting: dict[ThreadId, deque[Report]] = {}
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._sender: threading.Thread | None = None

    def publish(self, thread: ThreadId, event: Mapping[str, object]) -> None:
        """Take an event of a driver (`WorkerContext.publish`), of which only progress is sent:
        followers read the rest in the store.
        """
        report = event.get("progress")
        if not isinstance(report, Mapping):
            return
        with self._changed:
            if self._sender is None:
                self._sender = threading.Thread(target=self._run, name="progress", daemon=True)
                self._sender.start()
            self._waiting.setdefault(thread, deque(maxlen=MOST_REPORTS)).append(_shortened(report))
            self._changed.notify()

    def close(self) -> None:
        """Send no more. Idempotent."""
        with self._changed:
            self._closing.set()
            self._changed.notify()

    def _run(self) -> None:
        while not self._closing.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing.is_set())
                found, self._waiting = self._waiting, {}
            with suppress(UncagedError):  # lost, as any report may be
                self._send(found)
            self._closing.wait(SEND_S)


def _shortened(report: Mapping[str, object]) -> Report:
    return {
        name: value[:MOST_CHARACTERS] if isinstance(value, str) else value
        for name, value in report.items()
    }
