"""Graphs as text and as mermaid."""

from __future__ import annotations

from uncaged_engine.flows.graphs import (
    Edge,
    as_mermaid,
    as_path,
    as_text,
    edges_of_table,
    merge,
    path_of,
)

TABLE = {
    "__start__": {"": ("planner",)},
    "planner": {"planned": ("coder",), "aborted": ("__end__",)},
    "coder": {"done": ("__end__",), "more": ("coder",)},
}
RECORDS: list[dict[str, object]] = [
    {"seq": 1, "intent": {"role": {"name": "planner"}}},
    {"seq": 1, "role": "planner", "meta": {"status": "planned"}},
    {"seq": 2, "role": "coder", "meta": {"status": "more"}},
    {"seq": 3, "role": "coder", "meta": {"status": "done"}},
    {"control": "pause"},
]


def test_a_table_is_drawn_exactly() -> None:
    """Every edge of the table, each under its source."""
    assert as_text(edges_of_table(TABLE)) == [
        "start",
        "└─ → planner",
        "planner",
        "├─ planned → coder",
        "└─ aborted → end",
        "coder",
        "├─ done → end",
        "└─ more → coder",
    ]


def test_mermaid_has_every_node_and_edge() -> None:
    """Nodes are numbered, so that no name can be a word of mermaid."""
    assert as_mermaid(edges_of_table(TABLE)) == [
        "flowchart TD",
        '    n0(("start"))',
        '    n1["planner"]',
        '    n2["coder"]',
        '    n3(("end"))',
        "    n0 --> n1",
        '    n1 -->|"planned"| n2',
        '    n1 -->|"aborted"| n3',
        '    n2 -->|"done"| n3',
        '    n2 -->|"more"| n2',
    ]


def test_a_name_cannot_break_mermaid() -> None:
    """Quotes and markup in a status become mermaid's own escapes."""
    assert as_mermaid([Edge("a", 'x"|<b>#', "b")])[-1] == '    n0 -->|"x#quot;|#lt;b#gt;#35;"| n1'


def test_a_path_follows_the_role_steps() -> None:
    """The label of an edge is what its source reported; the end is drawn when the thread
    completed.
    """
    path = path_of(RECORDS, ended=True)
    assert path == [
        Edge("__start__", "", "planner"),
        Edge("planner", "planned", "coder"),
        Edge("coder", "more", "coder"),
        Edge("coder", "done", "__end__"),
    ]
    assert as_path(path) == "start → planner (planned) → coder (more) → coder (done) → end"
    assert path_of(RECORDS, ended=False) == path[:-1]
    assert as_path([]) == "no role was asked"


def test_a_path_is_counted_over_the_table() -> None:
    """Edges that were taken are counted; one that the table lacks is added; an unlabelled one
    takes any status.
    """
    path = [*path_of(RECORDS, ended=True), Edge("coder", "odd", "planner")]
    edges, counts = merge(edges_of_table(TABLE), path)
    assert edges[-1] == Edge("coder", "odd", "planner")
    assert counts[Edge("planner", "aborted", "__end__")] == 0
    assert "├─ planned → coder  (taken 1×)" in as_text(edges, counts)
    assert '    n1 ==>|"planned 1×"| n2' in as_mermaid(edges, counts)
    free, counted = merge([Edge("a", "", "b")], [Edge("a", "ok", "b"), Edge("a", "no", "b")])
    assert (free, counted[Edge("a", "", "b")]) == ([Edge("a", "", "b")], 2)
