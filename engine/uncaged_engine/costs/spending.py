"""Enforcement of a thread's limits on money, tokens, time and journal size: between effects, and
inside one once its usage is known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from uncaged_bundles.records import replace

from ..door.effects import Cancel
from ..door.outcomes import Answer, Failure, Outcome, Void
from ..journal.usage import NOTHING, SPENDING_LIMITS, Spent, exceeded, reached, total, usage_of

_LATER_S = 0.002
"""Margin for a timer that fires early, so that it finds the limit reached."""


class Spending:
    """Budget of one thread.

    limits: maxCost (US dollars), maxTokens, maxSeconds, maxJournalBytes; an absent one does not
    bind. written: size of the journal and its
    blobs in bytes. before: usage of this thread so far, without that of steps which a fork
    inherited. ran_s: running time in earlier
    processes. steady_s: a monotonic clock.
    """

    # An effect may have parts that run in parallel, and may start other threads, so usage under way
    # is kept per part and per child.

    def __init__(
        self,
        *,
        limits: Mapping[str, float],
        before: Spent,
        ran_s: float,
        cancel: Cancel,
        steady_s: Callable[[], float] = time.monotonic,
        written: Callable[[], int] = lambda: 0,
    ) -> None:
        self._limits = limits
        self._binding = not SPENDING_LIMITS.isdisjoint(limits)
        self._spent = before
        self._under_way: dict[int | None, Spent] = {}
        self._children: dict[tuple[int | None, str], Spent] = {}
        self._lock = threading.Lock()
        self._since_s = steady_s() - ran_s
        self._steady_s = steady_s
        self._written = written
        self._max_written = limits.get("maxJournalBytes")
        self._cancel = cancel
        self._cut: dict[str, object] | None = None

    def exceeded(self) -> dict[str, object] | None:
        """Return the limit that is reached, usage under way included."""
        if self._max_written is not None and self._written() >= self._max_written:
            return {
                "limit": "maxJournalBytes",
                "value": self._max_written,
                "message": reached(self._max_written, "journal byte"),
            }
        if not self._binding:
            return None
        return exceeded(self._limits, self._in_all(), self.running_s())

    def document(self) -> dict[str, object]:
        """Return this thread's own usage so far."""
        return self._spent.document()

    def left(self) -> dict[str, float]:
        """Return the rest of each limit that binds, as limits for a child thread."""
        spent = self._in_all()
        used = {
            "maxCost": spent.cost,
            "maxTokens": float(spent.tokens),
            "maxSeconds": self.running_s(),
        }
        return {
            name: max(0.0, self._limits[name] - used[name]) for name in used if name in self._limits
        }

    def note(self, usage: Mapping[str, object], *, part: int | None = None) -> None:
        """Record the total usage so far of the effect under way, or of a part; cancel it if that
        passes a limit.
        """
        with self._lock:
            self._under_way[part] = NOTHING.plus(usage)
        self._stop_if_over()

    def note_child(
        self, thread: str, usage: Mapping[str, object], *, part: int | None = None
    ) -> None:
        """Record the same for a child thread. Its usage is in its own journal, and becomes this
        thread's with the effect's outcome.
        """
        with self._lock:
            self._children[part, thread] = NOTHING.plus(usage)
        self._stop_if_over()

    def settle_part(self, part: int | None, outcome: Answer | Failure) -> None:
        """Count the usage of a finished part, or of an attempt that is retried."""
        with self._lock:
            self._forget(part)
            self._spent = self._spent.plus(usage_of(outcome.fields))
        self._stop_if_over()

    def running_s(self) -> float:
        """Return the running time of the thread, over all its processes."""
        return self._steady_s() - self._since_s

    @property
    def timed(self) -> bool:
        """Tell whether a time limit binds."""
        return "maxSeconds" in self._limits

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Cancel the effect performed inside the block when the time limit is reached."""
        limit = self._limits["maxSeconds"]
        timer = threading.Timer(max(0.0, limit - self.running_s()) + _LATER_S, self._stop_if_over)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def settle(self, outcome: Outcome) -> Outcome:
        """Count the usage of an effect. The void of one that a limit cancelled becomes a limit void
        with its usage so far.
        """
        if (
            type(outcome) is Answer
            and "usage" not in outcome.fields
            and "error" not in outcome.fields
            and not self._under_way
            and not self._children
        ):
            # the usual case, without the lock: no usage, and nothing under way to forget
            return outcome
        used = usage_of(outcome.fields) if isinstance(outcome, (Answer, Failure)) else None
        over = self._cut or (
            self.exceeded() if isinstance(outcome, Void) and outcome.word == "limit" else None
        )
        with self._lock:
            # An effect that was cut off reports no usage, so the last numbers that it sent are
            # counted.
            if isinstance(outcome, Void) and self._under_way:
                used = total(spent.document() for spent in self._under_way.values()).document()
            self._under_way.clear()
            self._children.clear()
            self._spent = self._spent.plus(used)
        if not isinstance(outcome, Void):
            return outcome
        more = {**outcome.more, **({"usage": used} if used else {})}
        if over is not None and outcome.word in ("killed", "limit"):
            return replace(
                outcome, word="limit", message=str(over["message"]), more={**more, **over}
            )
        return replace(outcome, more=more)

    def _in_all(self) -> Spent:
        with self._lock:
            return total(
                spent.document()
                for spent in (self._spent, *self._under_way.values(), *self._children.values())
            )

    def _forget(self, part: int | None) -> None:
        self._under_way.pop(part, None)
        for key in [key for key in self._children if key[0] == part]:
            del self._children[key]

    def check(self) -> None:
        """Cancel the effect under way if a limit is reached."""
        self._stop_if_over()

    def _stop_if_over(self) -> None:
        over = self.exceeded()
        # the first limit is the reason, whatever is passed while the effect stops
        if over is not None and self._cut is None:
            self._cut = over
            self._cancel.request()
