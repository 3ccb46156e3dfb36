"""Places of a graph's nodes and edges, and the drawing."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from uncaged_engine.flows.graphs import END, START, Edge
from uncaged_engine.flows.layout import GraphNode, layout
from uncaged_engine.flows.svg import as_svg

EDGES = [
    Edge(START, "", "planner"),
    Edge("planner", "planned", "coder"),
    Edge("coder", "done", "reviewer"),
    Edge("reviewer", "rejected", "coder"),
    Edge("reviewer", "approved", END),
    Edge("reviewer", "blocked", END),
    Edge("coder", "again", "coder"),
]


def overlap(one: GraphNode, other: GraphNode) -> bool:
    return (
        abs(one.x - other.x) * 2 < one.width + other.width
        and abs(one.y - other.y) * 2 < one.height + other.height
    )


BRANCHED = [Edge(START, "", name) for name in ("left", "middle", "a long name on the right")]


@pytest.mark.parametrize("edges", [EDGES, BRANCHED])
def test_nodes_do_not_overlap_and_the_drawing_holds_all(edges: list[Edge]) -> None:
    drawing = layout(edges)
    assert not any(
        overlap(one, other) for one in drawing.nodes for other in drawing.nodes if one is not other
    )
    points = [point for line in drawing.lines for point in line.points]
    assert all(0 <= x <= drawing.width and 0 <= y <= drawing.height for x, y in points)


def test_roles_follow_each_other_downwards() -> None:
    drawing = layout(EDGES)
    order = {node.name: node.y for node in drawing.nodes}
    assert order[START] < order["planner"] < order["coder"] < order["reviewer"] < order[END]


def test_statuses_of_one_pair_share_a_line_and_its_count() -> None:
    drawing = layout(EDGES, [(EDGES[4], 2), (EDGES[5], 1)])
    [line] = [one for one in drawing.lines if one.target == END]
    assert (line.labels, line.times) == (("approved", "blocked"), 3)


def test_the_drawing_of_nothing_is_empty() -> None:
    assert layout([]).nodes == ()


def test_texts_of_a_drawing_are_escaped() -> None:
    """A role's name and a status can hold anything."""
    hostile = '"><script>alert(1)</script>&\u202e'
    text = as_svg(layout([Edge(START, hostile, hostile)]), title=hostile)
    root = ET.fromstring(text)  # noqa: S314 - our own text
    assert not [node for node in root.iter() if node.tag.endswith("script")]
    assert "\u202e" not in text
