"""The verb `graph`: draws the graph of a flow, or the path of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_engine.services.flows import (
    Edge,
    FlowGraph,
    as_mermaid,
    as_path,
    as_svg,
    as_text,
    find_version,
    flow_graph,
    layout,
    merge,
    path_of,
)

from ..display import json_output
from ..display.output import note, result
from ..inputs.completion import complete_flows, complete_threads
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_bundles.contract import Descriptor
    from uncaged_bundles.ids import BundleHash
    from uncaged_engine.api import Engine, ThreadSummary

MOST_LOOKED_AT = 1_000


@click.command()
@click.argument("flow", required=False, metavar="[FLOW]", shell_complete=complete_flows)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "mermaid", "svg")),
    default="text",
    show_default=True,
    help="The output: lines of text, a mermaid flowchart, or a drawing.",
)
@click.option(
    "--thread",
    metavar="THREAD",
    shell_complete=complete_threads,
    help="Show the path of this thread.",
)
@shared_option
@json_option
def command(flow: str | None, form: str, thread: str | None, as_json: bool) -> None:
    """Draw the graph of the roles of FLOW, or with --thread the path of a thread.

    A graph without edges, such as that of a flow without roles, has no flowchart and no drawing:
    the exit code is 1.
    """
    if flow is None and thread is None:
        raise UsageError("name a flow, or a thread with --thread")
    engine = open_engine()
    path: list[Edge] = []
    view = None
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
    bundle = engine.bundle(bundle_hash)
    config = engine.config
    graph = flow_graph(
        engine.store,
        bundle,
        partial(_newest, engine, bundle_hash) if view is None else list,
        prefer=config.sandbox,
        deadline_s=config.limits.bundle_s,
    )
    edges, counts = list(graph.edges), graph.counts
    if view is not None:
        edges, counts = merge(edges, path)
    if as_json:
        json_output.document(
            {
                "hash": bundle_hash,
                "declared": graph.origin == "declared",
                "inferred": graph.origin == "inferred",
                "edges": [
                    {
                        "from": edge.source,
                        "status": edge.label,
                        "to": edge.target,
                        "taken": counts[edge],
                    }
                    for edge in edges
                ],
                "path": [edge.target for edge in path],
            }
        )
        return
    if not edges and form != "text":
        raise RefusedError(without_edges(bundle.descriptor))
    tell_origin(graph, edges, descriptor=bundle.descriptor)
    if form == "svg":
        inferred = " (inferred)" if graph.origin == "inferred" else ""
        title = f"{bundle.descriptor.name}{inferred}"
        result(as_svg(layout(edges, counts.items()), title=title).rstrip())
        return
    if thread is not None and form == "text":
        result(as_path(path))
    for line in as_mermaid(edges, counts) if form == "mermaid" else as_text(edges, counts):
        result(line)


def _newest(engine: Engine, bundle: BundleHash) -> Sequence[ThreadSummary]:
    """Return threads of a bundle, the newest first; of a shared store those among its newest."""
    from uncaged_engine.threads.filtering import ThreadFilter

    most = MOST_LOOKED_AT if engine.is_shared else None
    return engine.page(ThreadFilter(flow=bundle), limit=MOST_LOOKED_AT, most_read=most).threads


def tell_origin(graph: FlowGraph, edges: Sequence[Edge], *, descriptor: Descriptor) -> None:
    """Note where the edges are from, unless the bundle declares them."""
    if not edges:
        note(without_edges(descriptor))
    elif graph.origin == "inferred":
        note(
            "inferred: the moderator was run over the statuses of its roles; it may take other edges, too"
        )
    elif graph.origin != "declared":
        note("the bundle declares no graph; these are the edges that its threads took")


def without_edges(descriptor: Descriptor) -> str:
    """Return why a graph has no edges."""
    if descriptor.roles:
        return "the bundle declares no graph and has no thread with role steps yet, so there are no edges to draw"
    return f"{descriptor.name} has no roles and no thread with role steps, so there are no edges to draw"
