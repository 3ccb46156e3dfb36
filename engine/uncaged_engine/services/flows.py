"""Flows as people look at them: versions, differences of two, and graphs."""

from __future__ import annotations

from ..flows.differences import compare
from ..flows.graphs import Edge, as_mermaid, as_path, as_text, edges_of_table, merge, path_of
from ..flows.layout import layout
from ..flows.svg import as_svg
from ..flows.versions import find_version, former_hash, load_version
from ..threads.flow_graph import MAX_THREADS_READ, FlowGraph, flow_graph

__all__ = [
    "MAX_THREADS_READ",
    "Edge",
    "FlowGraph",
    "as_mermaid",
    "as_path",
    "as_svg",
    "as_text",
    "compare",
    "edges_of_table",
    "find_version",
    "flow_graph",
    "former_hash",
    "layout",
    "load_version",
    "merge",
    "path_of",
]
