"""A flow's worker starts while its caller still prepares what to ask for, and before the caller has imported most of the engine."""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.registry import Registry
from uncaged_bundles.store import Store

from .client import Launching, rouse


def rouse_flow(flow: str, root: Path | None = None) -> Launching | None:
    """Start the worker of a flow unless one listens, and wait for nothing; it leaves again if nobody asks it for a thread.

    Returns:
        None as well if something is in the way: whoever runs the flow finds out what.
    """
    try:
        store = Store.open(root)
        return rouse(store, Registry(store).resolve(flow)[1])
    except (UncagedError, OSError):
        return None
