"""Early start of a flow's worker, while the caller still imports its modules and prepares its
request.
"""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store

from .client import Launching, rouse


def rouse_flow(flow: str, root: Path | None = None) -> Launching | None:
    """Start the worker of a flow unless one listens, without waiting; it ends again if no request
    for a thread arrives.

    Returns:
        None as well after an error, which the run itself will report.
    """
    try:
        store = Store.open(root)
        head = Registry(store).indexed_head(flow)
        return None if head is None else rouse(store, head)
    except (UncagedError, OSError, ValueError):
        return None
