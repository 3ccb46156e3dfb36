"""How often a flow was used is counted from its threads' journals, and nothing else is kept about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.ids import BundleHash, thread_created_ms
from uncaged_bundles.storage.snapshot import Flow
from uncaged_bundles.storage.store import Store

from .display.durations import ago
from .display.screen import Piece, Styled

_KEPT = re.compile(rb'^    "unsupported": "([a-z]+)",$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Threads, and when the newest was started."""

    count: int = 0
    last_ms: int | None = None


NEVER = Use()


def count_uses(store: Store) -> Mapping[BundleHash, Use]:
    """Return the use of each bundle, from the names of the journals alone."""
    counted: dict[BundleHash, Use] = {}
    for bundle, thread, _ in store.find_threads():
        former = counted.get(bundle, NEVER)
        counted[bundle] = Use(count=former.count + 1, last_ms=max(former.last_ms or 0, thread_created_ms(thread)))
    return counted


def used_by(flow: Flow, counted: Mapping[BundleHash, Use]) -> Use:
    """Return the use of all versions of a flow."""
    uses = [counted.get(version.hash, NEVER) for version in (flow.head, *flow.history)]
    return Use(count=sum(use.count for use in uses), last_ms=max((use.last_ms for use in uses if use.last_ms is not None), default=None))


def spell_use(use: Use, now_ms: int) -> str:
    return (
        "never" if use.last_ms is None else f"{use.count} times, {ago(use.last_ms, now_ms)}" if use.count > 1 else ago(use.last_ms, now_ms)
    )


def unsupported_language(path: Path) -> str | None:
    """Return the language of a flow that is only kept; looked for as our builder writes it, so that listing flows parses none."""
    try:
        found = _KEPT.search(path.read_bytes())
    except OSError:
        return None
    return found[1].decode() if found else None


def mark(flow: Flow, unsupported: str | None) -> Piece:
    words = [*([] if flow.enabled else ["disabled"]), *([f"unsupported: {unsupported}"] if unsupported else [])]
    return Styled(", ".join(words), "yellow") if words else ""
