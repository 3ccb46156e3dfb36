"""Role graphs, as mermaid or as text. The same edges always give the same output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from uncaged_bundles.clean import clean_line
from uncaged_bundles.contract import Graph

START, END = "__start__", "__end__"
SHOWN = {START: "start", END: "end"}


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    source: str
    label: str
    target: str


def edges_of_table(graph: Graph) -> list[Edge]:
    """Return the edges of a descriptor's graph, in its own order."""
    return [
        Edge(source, label, target)
        for source, rows in graph.items()
        for label, targets in rows.items()
        for target in targets
    ]


def path_of(records: Iterable[Mapping[str, object]], *, ended: bool) -> list[Edge]:
    """Return the edges that a thread took, in order; an edge's label is the status that its source
    reported.
    """
    edges: list[Edge] = []
    source, label = START, ""
    for record in records:
        if "role" not in record or "seq" not in record:
            continue
        target = str(record["role"])
        edges.append(Edge(source, label, target))
        meta = record.get("meta")
        source, label = target, str(meta.get("status", "")) if isinstance(meta, Mapping) else ""
    if ended and edges:
        edges.append(Edge(source, label, END))
    return edges


def merge(table: Sequence[Edge], path: Sequence[Edge]) -> tuple[list[Edge], Counter[Edge]]:
    """Return the edges to draw and how often the path took each; an edge that the table leaves
    unlabelled takes any status.
    """
    unlabelled = {(edge.source, edge.target): edge for edge in table if not edge.label}
    known = set(table)
    counts = Counter(
        edge if edge in known else unlabelled.get((edge.source, edge.target), edge) for edge in path
    )
    return [*table, *(edge for edge in counts if edge not in known)], counts


def as_text(edges: Sequence[Edge], counts: Counter[Edge] | None = None) -> list[str]:
    """Return one block for each source, with its targets below it."""
    lines: list[str] = []
    for source in dict.fromkeys(edge.source for edge in edges):
        lines.append(_name(source))
        targets = [edge for edge in edges if edge.source == source]
        for edge in targets:
            corner = "└─" if edge is targets[-1] else "├─"
            label = f"{clean_line(edge.label)} → " if edge.label else "→ "
            times = f"  (taken {counts[edge]}×)" if counts and counts[edge] else ""
            lines.append(f"{corner} {label}{_name(edge.target)}{times}")
    return lines


def as_path(path: Sequence[Edge]) -> str:
    """Return a thread's path on one line."""
    if not path:
        return "no role was asked"
    return " → ".join(
        [_name(path[0].source), *(_arrow(edge, index, path) for index, edge in enumerate(path))]
    )


def as_mermaid(edges: Sequence[Edge], counts: Counter[Edge] | None = None) -> list[str]:
    """Return a flowchart; taken edges are thick and labelled with their count."""
    names = list(dict.fromkeys(name for edge in edges for name in (edge.source, edge.target)))
    ids = {name: f"n{number}" for number, name in enumerate(names)}
    lines = ["flowchart TD"]
    lines += [f"    {ids[name]}{_shape(name)}" for name in names]
    for edge in edges:
        count = counts[edge] if counts else 0
        label = " ".join(word for word in (edge.label, f"{count}×" if count else "") if word)
        arrow = "==>" if count else "-->"
        lines.append(
            f"    {ids[edge.source]} {arrow}{f'|{_quoted(label)}|' if label else ''} {ids[edge.target]}"
        )
    return lines


def _arrow(edge: Edge, index: int, path: Sequence[Edge]) -> str:
    status = path[index + 1].label if index + 1 < len(path) else ""
    return f"{_name(edge.target)}{f' ({clean_line(status)})' if status else ''}"


def _shape(name: str) -> str:
    text = _quoted(_name(name))
    return f"(({text}))" if name in SHOWN else f"[{text}]"


def _quoted(text: str) -> str:
    """Return *text* with mermaid's escapes, so that a label cannot end its quotes or start
    markup.
    """
    safe = (
        clean_line(text)
        .replace("#", "#35;")
        .replace('"', "#quot;")
        .replace("<", "#lt;")
        .replace(">", "#gt;")
    )
    return f'"{safe}"'


def _name(name: str) -> str:
    return SHOWN.get(name, clean_line(name))
