"""Ids of the threads that effects start, and how deep threads may start one another."""

from __future__ import annotations

from _blake2 import blake2b
from collections.abc import Mapping
from typing import Any

from uncaged_bundles.ids import ThreadId, new_thread_id

__all__ = ["DEEPEST", "depth_of", "derived_id"]

DEEPEST = 16
"""Maximum depth of threads that start one another."""


def derived_id(key: str, intended_ms: int) -> ThreadId:
    """Return the id of the thread that the effect with this key starts. Equal arguments give equal
    ids.
    """
    return new_thread_id(intended_ms, blake2b(key.encode(), digest_size=10).digest())


def depth_of(start: Mapping[str, Any]) -> int:
    """Return the number of ancestors of a thread, from its start record."""
    parent = start.get("parent")
    return int(parent["depth"]) if isinstance(parent, Mapping) else 0
