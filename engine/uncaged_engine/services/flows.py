"""Flows as people look at them: versions, differences of two, and graphs."""

from __future__ import annotations

from ..flows.differences import Section, compare, reversed_sentence
from ..flows.graphs import (
    END,
    START,
    Edge,
    as_mermaid,
    as_path,
    as_text,
    edges_of_table,
    merge,
    path_of,
)
from ..flows.inferred import inferred_edges
from ..flows.layout import GraphDrawing, GraphLine, GraphNode, layout
from ..flows.svg import as_svg
from ..flows.versions import find_version, former_hash, load_version
from ..threads.flow_graph import MAX_THREADS_READ, FlowGraph, GraphOrigin, flow_graph

__all__ = [
    "END",
    "MAX_THREADS_READ",
    "START",
    "Edge",
    "FlowGraph",
    "GraphDrawing",
    "GraphLine",
    "GraphNode",
    "GraphOrigin",
    "Section",
    "as_mermaid",
    "as_path",
    "as_svg",
    "as_text",
    "compare",
    "edges_of_table",
    "find_version",
    "flow_graph",
    "former_hash",
    "inferred_edges",
    "layout",
    "load_version",
    "merge",
    "path_of",
    "reversed_sentence",
]
