"""Usage of flows: the number of threads and the start of the newest, counted from the first lines
of their journals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.ids import BundleHash, thread_created_ms
from uncaged_bundles.storage.snapshot import Flow
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import archive, lines

from .display.durations import ago
from .display.output import Piece, Styled


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowUsage:
    """The number of threads, and when the newest was started."""

    count: int = 0
    last_ms: int | None = None


NO_USAGE = FlowUsage()


def count_usage(store: Store) -> Mapping[str | BundleHash, FlowUsage]:
    """Return the usage of each flow name; a thread whose journal does not name its flow counts for
    its bundle's hash.
    """
    counted: dict[str | BundleHash, FlowUsage] = {}
    for bundle, thread, path in store.find_journals():
        key = flow_of(path) or bundle
        former = counted.get(key, NO_USAGE)
        counted[key] = FlowUsage(
            count=former.count + 1, last_ms=max(former.last_ms or 0, thread_created_ms(thread))
        )
    return counted


def flow_of(path: str) -> str | None:
    """Return the flow name in the first line of a journal, plain or archived; None if it is not
    there.
    """
    try:
        return lines.flow_in(archive.head(path, lines.HEAD_BYTES))
    except (UncagedError, OSError, ValueError):
        return None


def usage_of(flow: Flow, counted: Mapping[str | BundleHash, FlowUsage]) -> FlowUsage:
    """Return the usage of a flow: its threads by name, and unnamed threads of its versions."""
    uses = [
        counted[key]
        for key in (flow.name, flow.hash, *[version.hash for version in flow.history])
        if key in counted
    ]
    if not uses:
        return NO_USAGE
    return FlowUsage(
        count=sum(use.count for use in uses),
        last_ms=max((use.last_ms for use in uses if use.last_ms is not None), default=None),
    )


def spell_usage(use: FlowUsage, now_ms: int) -> str:
    return (
        "never"
        if use.last_ms is None
        else f"{use.count} times, {ago(use.last_ms, now_ms)}"
        if use.count > 1
        else ago(use.last_ms, now_ms)
    )


def flow_note(flow: Flow) -> Piece:
    words = [
        *([] if flow.enabled else ["disabled"]),
        *([f"unsupported: {flow.unsupported}"] if flow.unsupported else []),
    ]
    return Styled(", ".join(words), "yellow") if words else ""
