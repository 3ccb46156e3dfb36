"""The effect `sleep`: a wait of some seconds, or until a moment.

``{"sleep": {"seconds": 90}}`` waits that long by a clock that is never set and that counts a suspended machine's time. A further
attempt after a crash waits for what is left since the intent's timestamp, and never longer than asked. ``{"sleep": {"until": ms}}`` names
a moment of the wall clock. After a reboot the thread is interrupted; ``resume --due`` goes on with all whose moment has come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.effects import EffectContext, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void

if TYPE_CHECKING:
    from uncaged_engine.state.observe import ThreadView

STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
LONGEST_S = 366 * 24 * 3600


class SleepHandler:
    kind = "sleep"
    limits: frozenset[str] = frozenset()

    def outcome_schema(self, _body: object) -> Mapping[str, object]:
        return {"type": "integer"}

    def rule(self, body: object, bundle: Bundle) -> Rule:  # noqa: ARG002 - the protocol's signature
        return "repeat"

    def __init__(self, steady_s: Callable[[], float] = lambda: time.clock_gettime(STEADY)) -> None:
        self._steady_s = steady_s

    def perform(self, body: object, context: EffectContext) -> Outcome:
        due = due_ms(body, context.intended_ms)
        if isinstance(due, str):
            return Failure.of("effect", f"sleep: {due}")
        left_s = self._left(body, due, context)
        while (wait_s := left_s()) > 0:
            wakes = datetime.fromtimestamp(context.clock_ms() / 1000 + wait_s)
            context.progress({"text": f"until {wakes:%Y-%m-%d %H:%M:%S}"})
            if context.cancel.wait(min(wait_s, 60.0)):
                return Void(word="killed", message="killed while it slept")
        return Answer(fields={"outcome": due})

    def _left(self, body: object, due: int, context: EffectContext) -> Callable[[], float]:
        """How many seconds are left, at any time."""
        seconds = body.get("seconds") if isinstance(body, Mapping) else None
        if not isinstance(seconds, int | float):
            return lambda: (due - context.clock_ms()) / 1000
        if context.attempt > 1:
            seconds = min(seconds, (due - context.clock_ms()) / 1000)
        end_s = self._steady_s() + seconds
        return lambda: end_s - self._steady_s()

    def probe(self, body: object, context: EffectContext) -> Outcome | None:  # noqa: ARG002 - the protocol's signature
        return None


def is_due(view: ThreadView, now_ms: int) -> bool:
    """Whether the last thing that a thread asked for is a sleep that is over."""
    intent = next((record for record in reversed(view.records) if "seq" in record and "attempt" not in record), None)
    if intent is None or not isinstance(intent.get("intent"), Mapping) or "sleep" not in intent["intent"]:
        return False
    due = due_ms(intent["intent"]["sleep"], int(intent["timestamp"]))
    return isinstance(due, int) and due <= now_ms


def due_ms(body: object, intended_ms: int) -> int | str:
    """The moment to wake, or what is wrong with the effect."""
    if not isinstance(body, Mapping) or len(body) != 1:
        return 'its body is {"seconds": number} or {"until": milliseconds}'
    seconds, until = body.get("seconds"), body.get("until")
    if isinstance(until, int) and not isinstance(until, bool):
        return until if until - intended_ms <= LONGEST_S * 1000 else "a year is the longest sleep"
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds <= LONGEST_S:
        return intended_ms + round(seconds * 1000)
    return 'its body is {"seconds": number of at most a year} or {"until": milliseconds}'
