"""A flow's worker starts while its caller still prepares what to ask for, and before the caller has imported most of anything."""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store

from .client import Launching, rouse


def rouse_flow(flow: str, root: Path | None = None) -> Launching | None:
    """Start the worker of a flow unless one listens, and wait for nothing; it leaves again if nobody asks it for a thread.

    Returns:
        None as well if something is in the way: whoever runs the flow finds out what.
    """
    try:
        store = Store.open(root)
        head = Registry(store).indexed_head(flow)
        return None if head is None else rouse(store, head)
    except (UncagedError, OSError, ValueError):
        return None
