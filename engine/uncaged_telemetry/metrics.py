"""Instruments of the metrics that a worker sends."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.metrics import Meter
from uncaged_engine.door.observing import ModelTurn

SUMMED = frozenset({"flow", "all"})
"""Effects whose usage is that of others, which are counted themselves."""


class Instruments:
    """Counters and histograms of one process. Sums begin at 0 with it: `service.instance.id` tells
    processes apart.
    """

    def __init__(self, meter: Meter) -> None:
        self.active = meter.create_up_down_counter(
            "uncaged.threads.active", unit="{thread}", description="Threads that are driven now."
        )
        self.left = meter.create_counter(
            "uncaged.threads.left",
            unit="{thread}",
            description="Threads that a worker left, by status.",
        )
        self.steps = meter.create_histogram(
            "uncaged.step.duration", unit="s", description="Durations of performed effects."
        )
        self.flushes = meter.create_histogram(
            "uncaged.journal.flush.duration", unit="s", description="Durations of flushes."
        )
        self.queue = meter.create_up_down_counter(
            "uncaged.agents.queued",
            unit="{agent}",
            description="Agents that wait for a free slot on this machine.",
        )
        self.tokens = meter.create_counter(
            "uncaged.tokens", unit="{token}", description="Tokens used up, by direction."
        )
        self.cost = meter.create_counter(
            "uncaged.cost", unit="USD", description="Cost of what has a known price."
        )
        self.turns = meter.create_histogram(
            "gen_ai.client.operation.duration", unit="s", description="Durations of model turns."
        )
        self.turn_tokens = meter.create_histogram(
            "gen_ai.client.token.usage", unit="{token}", description="Tokens of model turns."
        )

    def count_usage(self, usage: Mapping[str, object], flow: str, kind: str) -> None:
        """Count the tokens and the cost of an effect."""
        if kind in SUMMED:
            return
        for field, direction in (("inputTokens", "input"), ("outputTokens", "output")):
            if amount := _number(usage.get(field)):
                attributes = {"gen_ai.token.type": direction, "uncaged.flow.name": flow}
                self.tokens.add(int(amount), attributes)
        if cost := _number(usage.get("cost")):
            self.cost.add(cost, {"uncaged.flow.name": flow})

    def count_turn(self, turn: ModelTurn) -> None:
        """Count a model's turn."""
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": turn.provider,
            "gen_ai.request.model": turn.model,
        }
        error = {"error.type": turn.error} if turn.error else {}
        self.turns.record(turn.seconds, {**attributes, **error})
        for field, direction in (("inputTokens", "input"), ("outputTokens", "output")):
            if amount := _number(turn.usage.get(field)):
                self.turn_tokens.record(int(amount), {**attributes, "gen_ai.token.type": direction})


def _number(value: object) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
