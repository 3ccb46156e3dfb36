"""Ids of the threads that effects start, and how deep threads may start one another."""

from __future__ import annotations

from _blake2 import blake2b
from collections.abc import Mapping
from typing import Any

from uncaged_bundles.ids import ThreadId, new_thread_id

DEEPEST = 16
"""So many threads may start one another, one inside the other."""


def derived_id(key: str, intended_ms: int) -> ThreadId:
    """Return the id of the thread that the effect with this key starts: the same whenever it is asked for."""
    return new_thread_id(intended_ms, blake2b(key.encode(), digest_size=10).digest())


def depth_of(start: Mapping[str, Any]) -> int:
    """Return how many threads are above one, from its start record."""
    parent = start.get("parent")
    return int(parent["depth"]) if isinstance(parent, Mapping) else 0
