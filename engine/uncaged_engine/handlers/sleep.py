"""A sleeping thread wakes at a fixed moment, however often its worker was started anew meanwhile.

``{"sleep": {"seconds": 90}}`` counts from when it was first asked for (the intent's timestamp), ``{"sleep": {"until": ms}}`` names the
moment itself. After a reboot the thread is interrupted; ``resume --due`` goes on with all whose moment has come.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from uncaged_bundles.validation.validate import Bundle

from ..effects import EffectContext, Rule
from ..outcomes import Answer, Failure, Outcome, Void

if TYPE_CHECKING:
    from ..state.observe import ThreadView

LONGEST_S = 366 * 24 * 3600


class SleepHandler:
    kind = "sleep"
    limits: frozenset[str] = frozenset()

    def rule(self, body: object, bundle: Bundle) -> Rule:  # noqa: ARG002 - the protocol's signature
        return "repeat"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        due = due_ms(body, context.intended_ms)
        if isinstance(due, str):
            return Failure.of("effect", f"sleep: {due}")
        while (left_ms := due - context.clock_ms()) > 0:
            context.progress({"text": f"until {datetime.fromtimestamp(due / 1000):%Y-%m-%d %H:%M:%S}"})
            if context.cancel.wait(min(left_ms / 1000, 60.0)):
                return Void(word="killed", message="killed while it slept")
        return Answer(fields={"outcome": due})

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
