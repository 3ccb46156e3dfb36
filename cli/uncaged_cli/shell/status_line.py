"""Status line of the shell: the conversation, its running and queued requests, and the cost of the
requests since the shell was started.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from uncaged_bundles.clean import shorten
from uncaged_engine.api import Engine
from uncaged_engine.journal.usage import NOTHING, Spent, total, usage_of
from uncaged_engine.threads.ending import Ending
from uncaged_engine.threads.timeline import Record

from ..display.costs import dollars, money
from ..display.plain import FollowedRecord, PlainView
from ..display.sentences import spell_call

REQUEST_COLUMNS = 40


class CostMeter:
    """Usage of the threads of this shell's requests. Any thread may call its methods."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """Args: changed: called after each change."""
        self._changed = changed
        self._lock = threading.Lock()
        self._spent: dict[str, Spent] = {}

    def add(self, thread: str, usage: object) -> None:
        """Add the usage of a step."""
        if usage:
            with self._lock:
                self._spent[thread] = self._spent.get(thread, NOTHING).plus(usage)
            self._changed()

    def replace(self, thread: str, usage: object) -> None:
        """Set the usage of a whole thread."""
        with self._lock:
            self._spent[thread] = total([usage])
        self._changed()

    def count(self, engine: Engine, thread: str) -> None:
        """Read the usage of a thread that was not followed."""
        self.replace(thread, engine.thread(thread).summary.spent.document())

    @property
    def sum(self) -> Spent:
        """Return the usage of all threads."""
        with self._lock:
            return total(spent.document() for spent in self._spent.values())


class MeteredView(PlainView):
    """The plain view, which also counts what a thread uses."""

    def __init__(self, meter: CostMeter) -> None:
        super().__init__()
        self._meter = meter
        self._thread = ""

    def start(self, start: Record) -> None:
        """Show the first record."""
        self._thread = str(start.get("threadId"))
        super().start(start)

    def record(self, followed: FollowedRecord) -> None:
        """Show a record and count its usage."""
        self._meter.add(self._thread, usage_of(followed.record))
        super().record(followed)

    def end(self, ending: Ending, thread: Mapping[str, object]) -> None:
        """Show the end."""
        self._meter.replace(self._thread, thread.get("used"))
        super().end(ending, thread)


def status_text(name: str, snapshot: Mapping[str, Any] | None, spent: Spent) -> str:
    """Return the status line. snapshot: the queue; None before the conversation is reached."""
    queue = snapshot or {}
    running, queued = queue.get("running"), queue.get("queued") or []
    cost = money(spent.cost, unpriced=spent.unpriced) or dollars(0)
    return "   ".join(
        (
            f"conversation: {shorten(name, REQUEST_COLUMNS)}",
            f"{running['state']}: {_content(running)}" if running else "nothing runs",
            f"queued: {len(queued)}",
            f"cost: {cost}",
        )
    )


def _content(entry: Mapping[str, Any]) -> str:
    text = entry["text"] if "text" in entry else spell_call(entry["call"])
    return shorten(str(text), REQUEST_COLUMNS)
