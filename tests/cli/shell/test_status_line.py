"""The status line of the shell."""

from __future__ import annotations

from uncaged_cli.shell.status_line import CostMeter, status_text
from uncaged_engine.journal.usage import Spent


def test_the_queue_and_the_cost_are_shown() -> None:
    """Running and queued requests are named, and a long or dirty text fits."""
    entry = {"state": "cancelling", "text": "a\x1b[2Jb " + "x" * 100}
    snapshot = {"running": entry, "queued": [entry, entry]}
    assert (
        status_text("work", snapshot, Spent(cost=0.5))
        == f"conversation: work   cancelling: ab {'x' * 36}…   queued: 2   cost: $0.50"
    )
    assert (
        status_text("work", None, Spent(input_tokens=5, unpriced=True))
        == "conversation: work   nothing runs   queued: 0   cost: price unknown"
    )


def test_each_thread_is_counted_once() -> None:
    """Steps add up while a thread runs, and its own sum replaces them at its end."""
    changes: list[None] = []
    meter = CostMeter(lambda: changes.append(None))
    usage = {"inputTokens": 10, "outputTokens": 1, "cost": 0.25}
    meter.add("a", usage)
    meter.add("a", usage)
    meter.add("a", None)
    assert (meter.sum.cost, len(changes)) == (0.5, 2)
    meter.replace("a", {**usage, "cost": 0.75})
    meter.replace("b", usage)
    assert meter.sum.cost == 1.0
