"""Graph of a flow: the declared one, else that of its moderator, else the edges that its threads
took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Literal

from uncaged_bundles.errors import SandboxUnavailable, UncagedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..flows.graphs import Edge, edges_of_table, merge, path_of
from ..flows.inferred import inferred_edges
from ..sandbox.mechanism import choose
from ..state.observe import ThreadSummary, view
from .lean import LeanBlobs

MAX_THREADS_READ = 200
"""The number of newest threads whose edges are read."""

GraphOrigin = Literal["declared", "inferred", "taken", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """Edges of a graph, with how often threads took them, as far as threads were read."""

    edges: tuple[Edge, ...]
    origin: GraphOrigin
    counts: Counter[Edge]


def flow_graph(
    store: Store,
    bundle: Bundle,
    threads: Callable[[], Iterable[ThreadSummary]],
    *,
    prefer: str,
    deadline_s: float,
) -> FlowGraph:
    """Return the graph of a bundle.

    Args:
        threads: returns those of the store, the newest first; called only if the bundle gives no
            graph. prefer: the sandbox of the settings. deadline_s: for each answer of the
            moderator.
    """
    table = bundle.descriptor.graph
    if table:
        return FlowGraph(
            edges=tuple(edges_of_table(table)), origin="declared", counts=Counter[Edge]()
        )
    try:
        found = inferred_edges(bundle, choose(prefer), deadline_s=deadline_s)
    except SandboxUnavailable:
        found = []
    if found:
        return FlowGraph(edges=tuple(found), origin="inferred", counts=Counter[Edge]())
    passed: list[Edge] = []
    own = [one for one in threads() if one.hash == bundle.hash and one.status != "corrupt"]
    for one in own[:MAX_THREADS_READ]:
        with suppress(UncagedError):  # it was removed meanwhile
            passed += _taken_by(store, one.thread_id, one.status, one.updated_ms)
    edges, counts = merge([], passed)
    return FlowGraph(edges=tuple(edges), origin="taken" if edges else "none", counts=counts)


@lru_cache(maxsize=4 * MAX_THREADS_READ)
def _taken_by(store: Store, thread: ThreadId, status: str, updated_ms: int) -> tuple[Edge, ...]:  # noqa: ARG001 - the time is the state of its journal
    """Return the edges that a thread took, read once for each state of it."""
    blobs = LeanBlobs(store.blobs, fields=("meta",))
    records = view(store, *store.locate_thread(thread), blobs=blobs).records
    return tuple(path_of(records, ended=status == "completed"))
