"""Waits of effects that have ended: whether a thread that no worker drives can go on by now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uncaged_bundles.errors import UncagedError

from ..door.effects import handled
from ..effect_kinds import handler_for


def is_due(records: Sequence[Mapping[str, Any]], now_ms: int) -> bool:
    """Return whether the last thing that a thread asked for is an effect that waits for a moment,
    which has come.
    """
    intent = next(
        (record for record in reversed(records) if "seq" in record and "attempt" not in record),
        None,
    )
    effect = intent.get("intent") if intent is not None else None
    if intent is None or not isinstance(effect, Mapping) or len(effect) != 1:
        return False
    [(kind, body)] = effect.items()
    try:
        due_ms = handler_for(str(kind)).due_ms(handled(body), int(intent["timestamp"]))
    except UncagedError:  # nothing here performs effects of that kind
        return False
    return due_ms is not None and due_ms <= now_ms
