"""The graph of a flow whose moderator is a function."""

from __future__ import annotations

from functools import partial

import pytest
from testbed.bundles import COUNT, granted, place_script, script_of
from uncaged_engine.api import Engine
from uncaged_engine.cells.cell import Cell
from uncaged_engine.flows.graphs import END, START
from uncaged_engine.services.flows import Edge, FlowGraph, flow_graph
from uncaged_engine.threads import flow_graph as flow_graph_module

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
    return flow_graph(engine.store, bundle, list, prefer="auto", deadline_s=deadline_s)


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
            engine.store, engine.bundle("moderated"), list, prefer="auto", deadline_s=20
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


def test_taken_edges_are_read_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph of a flow that gives none has the edges that its threads took, with their numbers;
    a second look reads only the journals that have changed.
    """
    bundle = granted(engine.store, COUNT)
    scripts = [script_of(bundle, number=number).intent(1) for number in (1, 2)]
    for script in scripts:
        script.output(1, status="done").end("completed")
        place_script(engine.store, bundle, script)
    drawn = partial(flow_graph, engine.store, bundle, engine.threads, prefer="auto", deadline_s=20)
    graph = drawn()
    assert graph.origin == "taken"
    assert graph.counts == {Edge(START, "", "writer"): 2, Edge("writer", "done", END): 2}
    with monkeypatch.context() as patched:
        patched.setattr(flow_graph_module, "view", None)
        assert drawn() == graph
    grown = script_of(bundle, number=1).intent(1).output(1, status="done").done(2, role="reader")
    place_script(engine.store, bundle, grown)
    assert drawn().counts[Edge("writer", "done", "reader")] == 1
