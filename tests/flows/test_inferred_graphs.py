"""The graph of a flow whose moderator is a function."""

from __future__ import annotations

import pytest
from uncaged_engine.api import Engine
from uncaged_engine.cells.cell import Cell
from uncaged_engine.flows.graphs import END, START
from uncaged_engine.services.flows import Edge, FlowGraph, flow_graph

ROLE = (
    '{"description": "d", "systemPrompt": "s", "extractPrompt": "e", "schema": '
    '{"type": "object", "required": ["status"], "properties": {"status": {"enum": %s}}}}'
)
MODERATED = f"""descriptor = {{
    "contract": 1,
    "name": "moderated",
    "description": "Two roles.",
    "kind": "workflow",
    "roles": {{"coder": {ROLE % '["done", "stuck"]'}, "reviewer": {ROLE % '["approved", "rejected"]'}}},
    "policy": {{"role": {{}}}},
    "continues": True,
}}


def run(input, options):
    steps = [step for step in input["steps"] if "meta" in step]
    while True:
        role = moderator(steps)
        if role is None:
            return {{"success": True}}
        steps.append((yield {{"role": {{"name": role}}}}))


def moderator(steps):
    if not steps:
        return "coder"
    last = steps[-1]["role"], steps[-1]["meta"]["status"]
    rounds = sum(step["role"] == "reviewer" for step in steps)
    if last == ("coder", "done"):
        return "reviewer"
    if last == ("reviewer", "rejected") and rounds < 2:
        return "coder"
    BODY
    return None
"""


def graph_of(engine: Engine, source: str, deadline_s: float = 20) -> FlowGraph:
    engine.add("moderated", source.encode(), accept=lambda _: True)
    bundle = engine.bundle("moderated")
    return flow_graph(engine.store, bundle, [], prefer="auto", deadline_s=deadline_s)


@pytest.mark.slow
def test_a_moderator_is_run_over_the_statuses_of_its_roles(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edge that only a later round takes is found, too; no agent is asked. It is run once."""
    graph = graph_of(engine, MODERATED.replace("BODY", "pass"))
    assert graph.origin == "inferred"
    assert set(graph.edges) == {
        Edge(START, "", "coder"),
        Edge("coder", "done", "reviewer"),
        Edge("coder", "stuck", END),
        Edge("reviewer", "approved", END),
        Edge("reviewer", "rejected", "coder"),
        Edge("reviewer", "rejected", END),
    }
    assert engine.threads() == []
    with monkeypatch.context() as patched:
        patched.setattr(Cell, "start", None)  # a second look starts no process
        again = flow_graph(
            engine.store, engine.bundle("moderated"), [], prefer="auto", deadline_s=20
        )
    assert again == graph


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "deadline_s", "back"),
    [
        ("raise ValueError", 20, [Edge("reviewer", "rejected", "coder")]),
        ("while True: pass", 2, []),  # it is asked no more after that
    ],
)
def test_a_moderator_that_fails_gives_what_was_found(
    engine: Engine, body: str, deadline_s: float, back: list[Edge]
) -> None:
    """It raises, or does not answer in time."""
    graph = graph_of(engine, MODERATED.replace("BODY", body), deadline_s)
    assert graph.origin == "inferred"
    assert graph.edges == (Edge(START, "", "coder"), Edge("coder", "done", "reviewer"), *back)
