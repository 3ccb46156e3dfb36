"""The verb `import`: reads a thread, or a flow as JSON, from a file that may be hostile. Nothing in
the file is granted by the import.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..display import json_output
from ..display.output import next_step, note, result
from ..inputs.options import accept_option, json_option
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_engine


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--name",
    metavar="NAME",
    help="The name of an imported flow (default: the name in FILE).",
)
@accept_option
@shared_option
@json_option
def command(file: Path, name: str | None, accept: bool, as_json: bool) -> None:
    """Import a thread with its bundle from FILE, or a flow if FILE is JSON.

    The bundle of a thread gets no grant and no name, and the thread continues only after you accept
    what it would use on this machine: resume THREAD --accept. The permissions of a flow must be
    granted. A flow is disabled until the values that the export omitted are filled in.
    """
    engine = open_engine()
    if file.suffix.lower() == ".json":
        from ..inputs.sources import bundle_source
        from .add import register

        found = bundle_source(file, name)
        for line in found.notes:
            note("  ", line)
        called = name or flow_name(found.source)
        register(engine, called, found, accept=accept, as_json=as_json, imported=True)
        return
    from uncaged_engine.threads.transfer import import_thread

    thread_id = import_thread(engine, file, now_ms=now_ms())
    if as_json:
        json_output.document({"threadId": thread_id})
        return
    result(f"imported {thread_id}")
    note(
        "its agents, workspace and test command were not imported: `resume` and `fork` choose them on this machine and ask first"
    )
    next_step(f"uncaged-workflow verify {thread_id}")


def flow_name(source: bytes) -> str:
    """Return the name in a bundle's descriptor."""
    from uncaged_bundles.validation.validate import read_bundle
    from uncaged_engine.effect_kinds import KNOWN

    return read_bundle(source, KNOWN).descriptor.name
