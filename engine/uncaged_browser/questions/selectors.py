"""Targets of elements that a model found, by host and description: `selectors.json` of a store.

They are kept apart from the journal, so that the next thread of any flow finds the element without
a model. The file can be made again; a damaged one counts as empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uncaged_bundles.shapes import ShapeError
from uncaged_bundles.storage.files import changing, read_if_there, write_atomically
from uncaged_bundles.storage.store import Store

from ..elements.targets import read_frames, read_target

__all__ = ["KeptSelectors", "selectors_path"]

MOST = 2_000
LOCK_TIMEOUT_S = 10.0


def selectors_path(store: Store) -> Path:
    """Return the file of a store."""
    return store.root / "selectors.json"


class KeptSelectors:
    """Targets by host and description; the oldest leave when there are too many."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, host: str, description: str) -> Mapping[str, Any] | None:
        """Return the keys ``target`` and ``frame`` of an operation; None if none are kept."""
        found: Any = self._all().get(_key(host, description))
        try:
            read_target(found["target"], ("target",))
            read_frames(found["frame"], ("frame",))
        except (LookupError, TypeError, ShapeError):
            return None
        return {"target": found["target"], "frame": found["frame"]}

    def keep(self, host: str, description: str, target: object, frame: object) -> None:
        """Keep a target, in the place of the former one."""
        key = _key(host, description)
        with changing(self._path, timeout_s=LOCK_TIMEOUT_S):
            kept = self._all()
            kept.pop(key, None)
            kept[key] = {"target": target, "frame": frame}
            newest = dict(list(kept.items())[-MOST:])
            write_atomically(self._path, json.dumps(newest, ensure_ascii=False).encode())

    def _all(self) -> dict[str, Any]:
        try:
            kept = json.loads(read_if_there(self._path) or b"{}")
        except (ValueError, RecursionError):
            return {}
        return kept if isinstance(kept, dict) else {}


def _key(host: str, description: str) -> str:
    return f"{host} {' '.join(description.casefold().split())}"
