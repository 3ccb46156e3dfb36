"""A limit of money, tokens or time stops a thread before its next effect, and an effect under way as soon as it is known to pass it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ..effects import Cancel
from ..outcomes import Answer, Failure, Outcome, Void
from .accounting import NOTHING, SPENDING_LIMITS, Spent, exceeded, usage_of


class Spending:
    """What one thread may still use up.

    limits: maxCost (US dollars), maxTokens, maxSeconds; an absent one does not bind. before: what this thread used so far, without what a
    fork inherited. since_ms: when it began, plus the time in which nobody ran it.
    """

    def __init__(self, *, limits: Mapping[str, float], before: Spent, since_ms: int, clock_ms: Callable[[], int], cancel: Cancel) -> None:
        self._limits = limits
        self._binding = not SPENDING_LIMITS.isdisjoint(limits)
        self._spent = before
        self._under_way = NOTHING
        self._since_ms = since_ms
        self._clock_ms = clock_ms
        self._cancel = cancel
        self._cut: dict[str, object] | None = None

    def exceeded(self) -> dict[str, object] | None:
        """The limit that is reached, counting what is under way."""
        if not self._binding:
            return None
        return exceeded(self._limits, self._spent.plus(self._under_way.document()), self._running_s())

    def document(self) -> dict[str, object]:
        """What this thread used up so far, as a usage."""
        return self._spent.document()

    def left(self) -> dict[str, float]:
        """What is left of each limit that binds, for a thread that draws on this one."""
        used = {"maxCost": self._spent.cost, "maxTokens": float(self._spent.tokens), "maxSeconds": self._running_s()}
        return {name: max(0.0, self._limits[name] - used[name]) for name in used if name in self._limits}

    def note(self, usage: object) -> None:
        """What an effect under way says that it used up so far, in all; it is stopped if that passes a limit."""
        if not isinstance(usage, Mapping):
            return
        self._under_way = NOTHING.plus(usage)
        self._stop_if_over()

    @property
    def timed(self) -> bool:
        """Whether there is a time limit to watch."""
        return "maxSeconds" in self._limits

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Stop what happens inside when the time is up."""
        limit = self._limits["maxSeconds"]
        timer = threading.Timer(max(0.0, limit - self._running_s()), self._stop_if_over)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def settle(self, outcome: Outcome) -> Outcome:
        """Count what an effect used up; one that was stopped for a limit becomes a void that says so, with what it had used."""
        used, self._under_way = self._under_way, NOTHING
        if isinstance(outcome, Answer | Failure):
            fields = outcome.fields if isinstance(outcome, Answer) else {"error": outcome.error}
            self._spent = self._spent.plus(usage_of(fields))
        elif isinstance(outcome, Void):
            self._spent = self._spent.plus(used.document())
            more = {**outcome.more, **({"usage": used.document()} if used.document() else {})}
            if self._cut is not None and outcome.word == "killed":
                return Void(word="limit", message=str(self._cut["message"]), more={**more, **self._cut})
            return Void(word=outcome.word, message=outcome.message, more=more)
        return outcome

    def _stop_if_over(self) -> None:
        over = self.exceeded()
        if over is not None and self._cut is None:
            self._cut = over
            self._cancel.request()

    def _running_s(self) -> float:
        return (self._clock_ms() - self._since_ms) / 1000
