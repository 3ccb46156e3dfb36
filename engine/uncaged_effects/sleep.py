"""The effect `sleep`: a wait of some seconds, or until a moment.

``{"sleep": {"seconds": 90}}`` waits that long by a clock that is never set and that counts a suspended machine's time. A further
attempt after a crash waits for what is left since the intent's timestamp, and never longer than asked. ``{"sleep": {"until": ms}}`` names
a moment of the wall clock. After a reboot the thread is interrupted; ``resume --due`` goes on with all whose moment has come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime

from uncaged_bundles.limits import SleepLimits
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void

STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
LONGEST_S = 366 * 24 * 3600


class SleepHandler(Handler):
    kind = "sleep"
    limits = SleepLimits
    answers: Mapping[str, object] = {"type": "integer"}
    recovery: Rule = "repeat"

    def __init__(self, steady_s: Callable[[], float] = lambda: time.clock_gettime(STEADY)) -> None:
        self._steady_s = steady_s

    def perform(self, body: object, context: EffectContext) -> Outcome:
        due = find_due(body, context.intended_ms)
        if isinstance(due, str):
            return Failure.of("effect", f"sleep: {due}")
        left_s = self._left(body, due, context)
        while (wait_s := left_s()) > 0:
            wakes = datetime.fromtimestamp(context.clock_ms() / 1000 + wait_s)
            context.progress({"text": f"until {wakes:%Y-%m-%d %H:%M:%S}"})
            if context.cancel.wait(min(wait_s, 60.0)):
                return Void(word="killed", message="killed while it slept")
        return Answer(fields={"outcome": due})

    def due_ms(self, body: object, intended_ms: int) -> int | None:
        due = find_due(body, intended_ms)
        return due if isinstance(due, int) else None

    def _left(self, body: object, due: int, context: EffectContext) -> Callable[[], float]:
        """How many seconds are left, at any time."""
        seconds = body.get("seconds") if isinstance(body, Mapping) else None
        if not isinstance(seconds, int | float):
            return lambda: (due - context.clock_ms()) / 1000
        if context.attempt > 1:
            seconds = min(seconds, (due - context.clock_ms()) / 1000)
        end_s = self._steady_s() + seconds
        return lambda: end_s - self._steady_s()


def find_due(body: object, intended_ms: int) -> int | str:
    """The moment to wake, or what is wrong with the effect."""
    if not isinstance(body, Mapping) or len(body) != 1:
        return 'its body is {"seconds": number} or {"until": milliseconds}'
    seconds, until = body.get("seconds"), body.get("until")
    if isinstance(until, int) and not isinstance(until, bool):
        return until if until - intended_ms <= LONGEST_S * 1000 else "a year is the longest sleep"
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= LONGEST_S:
        return intended_ms + round(seconds * 1000)
    return 'its body is {"seconds": number of at most a year} or {"until": milliseconds}'
