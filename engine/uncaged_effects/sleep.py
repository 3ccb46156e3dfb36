"""The effect `sleep`: a wait of some seconds, or until a time.

``{"sleep": {"seconds": 90}}`` waits that long by the monotonic clock that counts a suspended
machine's time. An attempt after a crash waits for the rest since the intent's timestamp, and never
longer than the body says. ``{"sleep": {"until": ms}}`` waits until a time of the wall clock. After
a reboot the thread is interrupted; ``due`` resumes all that are due.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated

from uncaged_bundles import shapes
from uncaged_bundles.limits import SleepLimits
from uncaged_bundles.records import dataclass
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void

STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
LONGEST_S = 366 * 24 * 3600


def duration(value: object, path: shapes.Path) -> float:
    """Return a number of seconds of at most a year."""
    if shapes.not_negative(value, path) > LONGEST_S:
        raise shapes.ShapeError(path, "a year is the longest sleep")
    return shapes.not_negative(value, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepBody:
    """Body of a ``sleep`` effect: one of the two. until: milliseconds since 1970, UTC."""

    seconds: Annotated[float | None, duration] = None
    until: Annotated[int | None, shapes.whole] = None

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.until is None):
            raise shapes.ShapeError((), 'must be {"seconds": number} or {"until": milliseconds}')

    def due_ms(self, intended_ms: int) -> int:
        return (
            self.until
            if self.until is not None
            else intended_ms + round((self.seconds or 0) * 1000)
        )


class SleepHandler(Handler):
    kind = "sleep"
    limits = SleepLimits
    answers: Mapping[str, object] = {"type": "integer"}
    recovery: Rule = "repeat"
    only_waits = True

    def __init__(self, steady_s: Callable[[], float] = lambda: time.clock_gettime(STEADY)) -> None:
        self._steady_s = steady_s

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("sleep", SleepBody, body)
        if isinstance(options, Failure):
            return options
        due = options.due_ms(context.intended_ms)
        if due - context.intended_ms > LONGEST_S * 1000:
            return Failure.of("effect", "sleep.until: a year is the longest sleep")
        left_s = self._left(options.seconds, due, context)
        while (wait_s := left_s()) > 0:
            wakes = datetime.fromtimestamp(context.clock_ms() / 1000 + wait_s)
            context.progress({"text": f"until {wakes:%Y-%m-%d %H:%M:%S}"})
            if context.cancel.wait(min(wait_s, 60.0)):
                return Void(word="killed", message="killed while it slept")
        return Answer(fields={"outcome": due})

    def due_ms(self, body: object, intended_ms: int) -> int | None:
        options = read_body("sleep", SleepBody, body)
        if isinstance(options, Failure):
            return None
        due = options.due_ms(intended_ms)
        return due if due - intended_ms <= LONGEST_S * 1000 else None

    def _left(self, seconds: float | None, due: int, context: EffectContext) -> Callable[[], float]:
        """Return a function that returns the seconds left."""
        if seconds is None:
            return lambda: (due - context.clock_ms()) / 1000
        if context.attempt > 1:
            seconds = min(seconds, (due - context.clock_ms()) / 1000)
        end_s = self._steady_s() + seconds
        return lambda: end_s - self._steady_s()
