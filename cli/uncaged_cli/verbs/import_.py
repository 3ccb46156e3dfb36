"""`import` takes in a thread, or a flow as JSON, from a file, which is treated as hostile; nothing
in it is granted by itself.
"""

from __future__ import annotations

from pathlib import Path

import click
from uncaged_bundles.errors import RefusedError

from ..display import json_output
from ..display.output import next_step, note, result
from ..inputs.options import accept_option, json_option
from ..runtime import now_ms, open_engine


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--name",
    metavar="NAME",
    help="What a flow is to be called here (default: what it calls itself).",
)
@accept_option
@json_option
def command(file: Path, name: str | None, accept: bool, as_json: bool) -> None:
    """Take in a thread with its bundle from FILE, or a flow if FILE is JSON.

    A thread's bundle is not granted anything and has no name here, and the thread does not go on
    before you accepted what it would use
    here: resume THREAD --accept. What a flow may do needs one yes, and what was left out of it when
    it was exported has to be filled in; it is disabled until then.
    """
    engine = open_engine()
    if file.suffix.lower() == ".json":
        from ..inputs.sources import bundle_source
        from .add import register

        found = bundle_source(file, name)
        for line in found.notes:
            note("  ", line)
        called = name or flow_name(found.source)
        if engine.registry.flow(called) is not None:
            raise RefusedError(
                f"there is a flow {called!r} already; choose another name with --name"
            )
        register(engine, called, found, accept=accept, as_json=as_json, origin="import")
        return
    from uncaged_engine.threads.parcel import import_thread

    thread_id = import_thread(engine, file, now_ms=now_ms())
    if as_json:
        json_output.document({"threadId": thread_id})
        return
    result(f"imported {thread_id}")
    note(
        "its agents, workspace and test command stay behind: `resume` and `fork` choose them here and ask before they go on"
    )
    next_step(f"uncaged-workflow verify {thread_id}")


def flow_name(source: bytes) -> str:
    """Return what a bundle calls itself."""
    from uncaged_bundles.validation.validate import read_bundle
    from uncaged_engine.effect_kinds import KNOWN

    return read_bundle(source, KNOWN).descriptor.name
