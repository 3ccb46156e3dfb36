"""Places of a role graph's nodes and edges, in layers from the start to the end. The same edges
always give the same places. Lengths are in pixels.

A layer is the number of edges from the start. An edge to a later layer runs down; one that goes
back, or to its own layer, runs around the right side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .graphs import END, SHOWN, START, Edge

CHARACTER = 8
LABEL_CHARACTER = 7
HEIGHT = 34
PADDING = 16
LEAST_WIDTH = 64
GAP_X = 48
GAP_Y = 62
MARGIN = 16
LANE = 26
PORT = 7
"""An edge around the side leaves below the middle of a node, and comes in above it."""
MOST_CHARACTERS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """Box of a role. x, y: its middle."""

    name: str
    text: str
    x: int
    y: int
    width: int
    height: int = HEIGHT


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLine:
    """Line of all edges between two nodes. points: from the source to the target. labels: the
    statuses. times: how often a thread took one of them.
    """

    source: str
    target: str
    labels: tuple[str, ...]
    times: int
    points: tuple[tuple[int, int], ...]
    label_at: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDrawing:
    """A graph with its places."""

    width: int
    height: int
    nodes: tuple[GraphNode, ...]
    lines: tuple[GraphLine, ...]

    def document(self) -> dict[str, object]:
        """Return the drawing for JSON."""
        return {
            "width": self.width,
            "height": self.height,
            "nodes": [
                {
                    "name": one.name,
                    "text": one.text,
                    "x": one.x,
                    "y": one.y,
                    "width": one.width,
                    "height": one.height,
                }
                for one in self.nodes
            ],
            "lines": [
                {
                    "from": one.source,
                    "to": one.target,
                    "statuses": list(one.labels),
                    "taken": one.times,
                    "points": [list(point) for point in one.points],
                    "labelAt": list(one.label_at),
                }
                for one in self.lines
            ],
        }


def layout(edges: Sequence[Edge], passed: Iterable[tuple[Edge, int]] = ()) -> GraphDrawing:
    """Place the nodes and the edges of a graph.

    passed: how often a thread took each edge.
    """
    names = list(dict.fromkeys(name for edge in edges for name in (edge.source, edge.target)))
    layers = _layers(names, edges)
    rows: dict[int, list[str]] = {}
    for name in names:
        rows.setdefault(layers[name], []).append(name)
    texts = {name: _shortened(SHOWN.get(name, name)) for name in names}
    widths = {name: max(LEAST_WIDTH, len(texts[name]) * CHARACTER + 2 * PADDING) for name in names}
    row_widths = [sum(widths[one] for one in row) + GAP_X * (len(row) - 1) for row in rows.values()]
    widest = max(row_widths, default=0)
    pairs: dict[tuple[str, str], list[str]] = {}
    for edge in edges:
        labels = pairs.setdefault((edge.source, edge.target), [])
        if edge.label and edge.label not in labels:
            labels.append(edge.label)
    down = {pair for pair in pairs if layers[pair[1]] == layers[pair[0]] + 1}
    widest = max([widest, *(_label_width(pairs[pair]) for pair in down)])
    nodes: dict[str, GraphNode] = {}
    for depth, row in sorted(rows.items()):
        width = sum(widths[one] for one in row) + GAP_X * (len(row) - 1)
        left = MARGIN + (widest - width) // 2
        for name in row:
            nodes[name] = GraphNode(
                name=name,
                text=texts[name],
                x=left + widths[name] // 2,
                y=MARGIN + HEIGHT // 2 + depth * (HEIGHT + GAP_Y),
                width=widths[name],
            )
            left += widths[name] + GAP_X
    counts: dict[tuple[str, str], int] = {}
    for edge, count in passed:
        pair = (edge.source, edge.target)
        counts[pair] = counts.get(pair, 0) + count
    right = MARGIN + widest
    lines = []
    for (source, target), labels in sorted(
        pairs.items(), key=lambda one: abs(layers[one[0][1]] - layers[one[0][0]])
    ):
        start, end = nodes[source], nodes[target]
        points: tuple[tuple[int, int], ...]
        if (source, target) in down:
            points = ((start.x, start.y + HEIGHT // 2), (end.x, end.y - HEIGHT // 2))
            at = ((start.x + end.x) // 2, (points[0][1] + points[1][1]) // 2)
        else:
            lane = right + max(LANE, _label_width(labels) // 2)
            right = lane + _label_width(labels) // 2
            points = (
                (start.x + start.width // 2, start.y + PORT),
                (lane, start.y + PORT),
                (lane, end.y - PORT),
                (end.x + end.width // 2, end.y - PORT),
            )
            at = (lane, (start.y + end.y) // 2)
        lines.append(
            GraphLine(
                source=source,
                target=target,
                labels=tuple(labels),
                times=counts.get((source, target), 0),
                points=points,
                label_at=at,
            )
        )
    depth = max(layers.values(), default=-1)
    return GraphDrawing(
        width=right + MARGIN,
        height=2 * MARGIN + HEIGHT + depth * (HEIGHT + GAP_Y) if nodes else 2 * MARGIN,
        nodes=tuple(nodes.values()),
        lines=tuple(lines),
    )


def _label_width(labels: Sequence[str]) -> int:
    return len(", ".join(labels)) * LABEL_CHARACTER


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def _layers(names: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Return the number of edges from the start to each node; the end comes last. What the start
    does not reach begins anew.
    """
    found: dict[str, int] = {}
    for first in dict.fromkeys([START, *names]):
        if first not in names or first in found or first == END:
            continue
        found[first] = 0
        row = [first]
        while row:
            reached = {edge.target for edge in edges if edge.source in row} - set(found) - {END}
            next_row = [name for name in names if name in reached]
            found.update(dict.fromkeys(next_row, found[row[0]] + 1))
            row = next_row
    if END in names:
        found[END] = max((at for name, at in found.items() if name != END), default=-1) + 1
    return found
