"""A flow's worker starts while its caller still prepares what to ask for, and before the caller has imported most of anything."""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import BundleHash, is_bundle_hash
from uncaged_bundles.storage.store import Store

from .client import Launching, rouse


def rouse_flow(flow: str, root: Path | None = None) -> Launching | None:
    """Start the worker of a flow unless one listens, and wait for nothing; it leaves again if nobody asks it for a thread.

    Returns:
        None as well if something is in the way: whoever runs the flow finds out what.
    """
    try:
        store = Store.open(root)
        head = guess_head(store.registry_path.read_bytes(), flow)
        return None if head is None else rouse(store, head)
    except (UncagedError, OSError, ValueError):
        return None


def guess_head(registry: bytes, flow: str) -> BundleHash | None:
    """Where a name points to, found in the registry as we spell it, without a parser; a wrong guess starts a worker that soon leaves."""
    entry = f"\n  {flow}:\n    hash: ".encode()
    at = registry.find(entry, registry.find(b"flows:\n"))
    text = registry[at + len(entry) :].partition(b"\n")[0].decode() if at >= 0 else ""
    return BundleHash(text) if is_bundle_hash(text) else None
