"""A limit of money, tokens or time stops a thread before its next effect, and an effect under way as soon as it is known to pass it."""

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
"""A timer may fire a little early; it must not find the limit unreached."""


class Spending:
    """What one thread may still use up.

    limits: maxCost (US dollars), maxTokens, maxSeconds, maxJournalBytes; an absent one does not bind. written: how many bytes the journal
    and its blobs have. before: what this thread used so far, without what a
    fork inherited. ran_s: how long it ran before, in other processes. steady_s: a clock that is never set.
    """

    # An effect may have parts that run side by side, and start other threads; what is under way is known for each of them.

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
        """The limit that is reached, counting what is under way."""
        if self._max_written is not None and self._written() >= self._max_written:
            return {"limit": "maxJournalBytes", "value": self._max_written, "message": reached(self._max_written, "journal byte")}
        if not self._binding:
            return None
        return exceeded(self._limits, self._in_all(), self.running_s())

    def document(self) -> dict[str, object]:
        """What this thread used up so far, as a usage."""
        return self._spent.document()

    def left(self) -> dict[str, float]:
        """What is left of each limit that binds, for a thread that draws on this one."""
        spent = self._in_all()
        used = {"maxCost": spent.cost, "maxTokens": float(spent.tokens), "maxSeconds": self.running_s()}
        return {name: max(0.0, self._limits[name] - used[name]) for name in used if name in self._limits}

    def note(self, usage: Mapping[str, object], *, part: int | None = None) -> None:
        """What an effect under way, or a part of it, says that it used up so far, in all; it is stopped if that passes a limit."""
        with self._lock:
            self._under_way[part] = NOTHING.plus(usage)
        self._stop_if_over()

    def note_child(self, thread: str, usage: Mapping[str, object], *, part: int | None = None) -> None:
        """The same of a thread that an effect started. It stands in that thread's journal, and here once the effect has an outcome."""
        with self._lock:
            self._children[part, thread] = NOTHING.plus(usage)
        self._stop_if_over()

    def settle_part(self, part: int | None, outcome: Answer | Failure) -> None:
        """Count what a part, or a try that is followed by another, used up."""
        with self._lock:
            self._forget(part)
            self._spent = self._spent.plus(usage_of(outcome.fields))
        self._stop_if_over()

    def running_s(self) -> float:
        """How long the thread has run, all its processes together."""
        return self._steady_s() - self._since_s

    @property
    def timed(self) -> bool:
        """Whether there is a time limit to watch."""
        return "maxSeconds" in self._limits

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Stop what happens inside when the time is up."""
        limit = self._limits["maxSeconds"]
        timer = threading.Timer(max(0.0, limit - self.running_s()) + _LATER_S, self._stop_if_over)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def settle(self, outcome: Outcome) -> Outcome:
        """Count what an effect used up; one that was stopped for a limit becomes a void that says so, with what it had used."""
        used = usage_of(outcome.fields) if isinstance(outcome, (Answer, Failure)) else None
        if used is None and not self._under_way and not self._children and isinstance(outcome, Answer):
            return outcome  # most effects use up nothing that counts
        over = self._cut or (self.exceeded() if isinstance(outcome, Void) and outcome.word == "limit" else None)
        with self._lock:
            if isinstance(outcome, Void) and self._under_way:
                used = total(spent.document() for spent in self._under_way.values()).document()
            self._under_way.clear()
            self._children.clear()
            self._spent = self._spent.plus(used)
        if not isinstance(outcome, Void):
            return outcome
        more = {**outcome.more, **({"usage": used} if used else {})}
        if over is not None and outcome.word in ("killed", "limit"):
            return replace(outcome, word="limit", message=str(over["message"]), more={**more, **over})
        return replace(outcome, more=more)

    def _in_all(self) -> Spent:
        with self._lock:
            return total(spent.document() for spent in (self._spent, *self._under_way.values(), *self._children.values()))

    def _forget(self, part: int | None) -> None:
        self._under_way.pop(part, None)
        for key in [key for key in self._children if key[0] == part]:
            del self._children[key]

    def check(self) -> None:
        """Stop what is under way if a limit is reached."""
        self._stop_if_over()

    def _stop_if_over(self) -> None:
        over = self.exceeded()
        if over is not None and self._cut is None:
            self._cut = over
            self._cancel.request()
