"""The verb `diff`: compares two versions of a flow, permissions first, or two threads."""

from __future__ import annotations

import click
from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_engine.services.flows import load_version

from ..display import json_output
from ..display.output import Styled, result
from ..display.thread_diff import show_thread_diff
from ..inputs.completion import complete_flows
from ..inputs.options import flow_argument, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@flow_argument
@click.argument("other", required=False, metavar="[OTHER]", shell_complete=complete_flows)
@click.option(
    "--threads",
    "of_threads",
    is_flag=True,
    help="FLOW and OTHER are threads: compare their steps.",
)
@shared_option
@json_option
def command(*, flow: str, other: str | None, of_threads: bool, as_json: bool) -> None:
    """Compare FLOW with OTHER: policy first, then roles, schemas, graph, source.

    Each is a flow's name, a hash, or NAME~N for the Nth former version. Without OTHER, the previous
    version of FLOW is compared with the current one.
    """
    from uncaged_engine.services.flows import compare

    from ..display.changes import coloured

    engine = open_engine()
    if of_threads:
        if other is None:
            raise UsageError("--threads needs two threads")
        show_thread_diff(engine.thread(flow), engine.thread(other), as_json=as_json)
        return
    if other is None:
        entry = engine.registry.entry(flow)
        if not entry.history:
            raise RefusedError(
                f"flow {entry.name!r} has only one version; name another flow or version to compare it with"
            )
        flow, other = f"{entry.name}~1", entry.name
    old, new = (load_version(engine.store, engine.registry, text) for text in (flow, other))
    sections = compare(old, new)
    if as_json:
        json_output.document(
            {
                "old": old.hash,
                "new": new.hash,
                "sections": {section.title: list(section.lines) for section in sections},
            }
        )
        return
    result(f"{flow} {old.hash} → {other} {new.hash}")
    if not sections:
        result("identical")
    for section in sections:
        result(Styled(section.title, "bright_black"))
        for line in section.lines:
            result("  ", coloured(line))
