"""Graph of a flow: the declared one, else that of its moderator, else the edges that its threads
took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from uncaged_bundles.errors import SandboxUnavailable
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..flows.graphs import Edge, edges_of_table, merge, path_of
from ..flows.inferred import inferred_edges
from ..sandbox.mechanism import choose
from ..state.observe import ThreadSummary, view

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
    threads: Iterable[ThreadSummary],
    *,
    prefer: str,
    deadline_s: float,
) -> FlowGraph:
    """Return the graph of a bundle.

    Args:
        threads: those of the store, the newest first; read only if the bundle gives no graph.
            prefer: the sandbox of the settings. deadline_s: for each answer of the moderator.
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
    own = [one for one in threads if one.hash == bundle.hash and one.status != "corrupt"]
    for summary in own[:MAX_THREADS_READ]:
        records = view(store, *store.locate_thread(summary.thread_id)).records
        passed += path_of(records, ended=summary.status == "completed")
    edges, counts = merge([], passed)
    return FlowGraph(edges=tuple(edges), origin="taken" if edges else "none", counts=counts)
