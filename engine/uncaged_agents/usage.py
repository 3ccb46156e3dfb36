"""Usage of agents: numbers by name that add up, such as tokens and money."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

MOST = 1e12


def is_plausible(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number that can be added up; any other is unknown."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MOST


def add_usage(total: dict[str, object], more: Mapping[str, object]) -> None:
    """Add numbers by name; of any other value keep the last."""
    for name, value in more.items():
        before = total.get(name)
        if isinstance(value, int | float) and isinstance(before, int | float):
            total[name] = before + value
        else:
            total[name] = value
