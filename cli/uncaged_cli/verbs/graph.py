"""The verb `graph`: draws the declared graph of a flow, or else the edges that its threads took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.graph import Edge, as_mermaid, as_path, as_text, edges_of_table, merge, path_of
from ..display.output import note, result
from ..inputs.completion import complete_flows, complete_threads
from ..inputs.options import json_option
from ..inputs.versions import find_version
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_bundles.ids import BundleHash
    from uncaged_engine.api import Engine

MAX_THREADS_READ = 200
"""The number of newest threads whose edges are drawn for a flow without a declared graph."""


@click.command()
@click.argument("flow", required=False, metavar="[FLOW]", shell_complete=complete_flows)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "mermaid")),
    default="text",
    show_default=True,
    help="The output: lines of text, or a mermaid flowchart.",
)
@click.option(
    "--thread",
    metavar="THREAD",
    shell_complete=complete_threads,
    help="Show the path of this thread.",
)
@json_option
def command(flow: str | None, form: str, thread: str | None, as_json: bool) -> None:
    """Draw the graph of the roles of FLOW, or with --thread the path of a thread."""
    if flow is None and thread is None:
        raise UsageError("name a flow, or a thread with --thread")
    engine = open_engine()
    path: list[Edge] = []
    if thread is not None:
        view = engine.thread(thread)
        bundle_hash = view.summary.hash
        path = path_of(view.records, ended=view.summary.status == "completed")
        if flow is not None and find_version(engine.registry, flow)[1] != bundle_hash:
            note(
                f"thread {view.summary.thread_id} ran {bundle_hash}, not the current version of {flow}; the graph is that of the thread"
            )
    else:
        bundle_hash = find_version(engine.registry, flow or "")[1]
    descriptor = engine.bundle(bundle_hash).descriptor
    table = descriptor.graph
    declared = edges_of_table(table) if table else []
    edges, counts = merge(declared, path) if thread is not None else (declared, Counter[Edge]())
    if not declared and thread is None:
        edges, counts = merge([], _edges_of_threads(engine, bundle_hash))
    if as_json:
        json_output.document(
            {"hash": bundle_hash, **_graph_document(declared, edges, counts, path)}
        )
        return
    if not edges and not descriptor.roles:
        note(
            f"{descriptor.name} has no roles and no thread with role steps, so there are no edges to draw"
        )
    elif not edges:
        note(
            "the bundle declares no graph and has no thread with role steps yet, so there are no edges to draw"
        )
    elif not declared:
        note("the bundle declares no graph; these are the edges that its threads took")
    if thread is not None and form == "text":
        result(as_path(path))
    for line in as_mermaid(edges, counts) if form == "mermaid" else as_text(edges, counts):
        result(line)


def _graph_document(
    declared: Sequence[Edge], edges: Sequence[Edge], counts: Counter[Edge], path: Sequence[Edge]
) -> dict[str, object]:
    listed = [
        {"from": edge.source, "status": edge.label, "to": edge.target, "taken": counts[edge]}
        for edge in edges
    ]
    return {"declared": bool(declared), "edges": listed, "path": [edge.target for edge in path]}


def _edges_of_threads(engine: Engine, bundle_hash: BundleHash) -> list[Edge]:
    """Return the edges that the newest threads of a bundle took; damaged threads are skipped."""
    gathered: list[Edge] = []
    threads = [
        summary
        for summary in engine.threads()
        if summary.hash == bundle_hash and summary.status != "corrupt"
    ]
    for summary in threads[:MAX_THREADS_READ]:
        view = engine.thread(summary.thread_id)
        gathered += path_of(view.records, ended=summary.status == "completed")
    return gathered
