"""The verb `export`: writes a thread with its bundle and blobs, or a flow without its credentials,
to a file.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError

from ..display import json_output
from ..display.output import next_step, note, result
from ..display.sizes import spell_bytes
from ..inputs.completion import complete_flows, complete_threads
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_browser.recording.flows import ExportFormat
    from uncaged_bundles.ids import ThreadId
    from uncaged_bundles.storage.snapshot import Flow
    from uncaged_engine.api import Engine


@click.command()
@click.argument(
    "what",
    metavar="THREAD|FLOW",
    shell_complete=lambda *arguments: [
        *complete_flows(*arguments),
        *complete_threads(*arguments),
    ],
)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(("recorder", "playwright", "recording")),
    help="Export a web flow as a recording: recorder (JSON of the Chrome DevTools Recorder), playwright (a Python"
    " script) or recording. It goes to standard output if no file is named.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Another way to name FILE.",
)
@click.option(
    "--as-test",
    is_flag=True,
    help="Write a pytest file (test_NAME.py, with a directory beside it) that replays the thread offline.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@shared_option
@json_option
def command(
    *,
    what: str,
    file: Path | None,
    form: ExportFormat | None,
    output: Path | None,
    as_test: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Export a thread with its bundle and blobs to FILE (default: its id with .tar.zst), or a flow
    (default: its name with .json or .py).

    Grants are not exported. Neither are header values, tokens and secrets of a block flow: import
    lists what to fill in.

    \b
    Examples:
      uncaged-workflow export latest                  the newest thread
      uncaged-workflow export latest run.tar.zst
      uncaged-workflow export latest tests/test_deploy.py --as-test
      uncaged-workflow export list-files flow.json    a flow, as its recipe
      uncaged-workflow export order --format playwright -o order.py
    """
    from uncaged_engine.threads.transfer import export_thread

    if file is not None and output is not None:
        raise UsageError("FILE is named twice")
    file = file or output
    engine = open_engine()
    flow = engine.registry.flow(what)
    if as_test and form is not None:
        raise UsageError("--as-test and --format exclude each other")
    if form is not None:
        if flow is None:
            raise NotFoundError(f"there is no flow {what!r}; --format is for flows")
        export_recording(engine, flow, form, file, force=force, as_json=as_json)
        return
    if as_test:
        if flow is not None:
            raise UsageError(
                f"--as-test needs a thread; `threads {flow.name}` lists those of {flow.name}"
            )
        export_test(engine, what, file, force=force, as_json=as_json)
        return
    if flow is not None:
        export_flow(engine, flow, file, force=force, as_json=as_json)
        return
    thread_id = find_thread(engine, what)
    path = free_path(file or Path(f"{thread_id}.tar.zst"), force=force)
    export_thread(engine, thread_id, path)
    size_bytes = path.stat().st_size
    if as_json:
        json_output.document({"threadId": thread_id, "file": str(path), "bytes": size_bytes})
        return
    result(f"{path}: {spell_bytes(size_bytes)}")
    next_step(f"uncaged-workflow import {shlex.quote(str(path))}")


def find_thread(engine: Engine, what: str) -> ThreadId:
    """Return the thread named *what*; the error also covers flows, since *what* may have
    meant one.
    """
    try:
        return engine.store.locate_thread(what)[1]
    except (NotFoundError, UsageError):
        if any(thread.startswith(what.upper()) for _, thread, _ in engine.store.find_threads()):
            raise  # an ambiguous prefix
    try:
        engine.registry.resolve(what)
    except NotFoundError as exc:
        raise NotFoundError(
            f"{what!r} is neither a flow nor a thread: {exc}; 'uncaged-workflow threads' lists threads"
        ) from exc
    raise NotFoundError(f"{what!r} is a bundle without a name; export its flow instead")


def export_test(
    engine: Engine, what: str, file: Path | None, *, force: bool, as_json: bool
) -> None:
    """Write a thread as a pytest file, with its bundle and journal beside it."""
    from uncaged_capture.as_test import default_name, write_test

    thread_id = find_thread(engine, what)
    target = file or Path(default_name(engine, thread_id))
    written = write_test(engine, thread_id, target, os.environ, force=force)
    if as_json:
        document = {
            "threadId": thread_id,
            "file": str(written.file),
            "directory": str(written.directory),
            "bytes": written.size_bytes,
        }
        json_output.document(document)
        return
    result(f"{written.file} and {written.directory}/: {spell_bytes(written.size_bytes)}")
    next_step(f"pytest {shlex.quote(str(written.file))}")


def export_flow(
    engine: Engine, flow: Flow, file: Path | None, *, force: bool, as_json: bool
) -> None:
    """Write a block flow as its JSON, any other flow as its bundle."""
    from uncaged_bundles.builders.blocks.block import block_flow_of, export_block_flow
    from uncaged_bundles.storage.files import write_atomically

    bundle = engine.bundle(flow.hash)
    block = block_flow_of(bundle)
    text, masked = (
        (bundle.source.decode(), list[str]())
        if block is None
        else export_block_flow(block, active=flow.enabled)
    )
    path = free_path(file or Path(f"{flow.name}{'.py' if block is None else '.json'}"), force=force)
    write_atomically(path.absolute(), text.encode())
    if as_json:
        json_output.document(
            {"flow": flow.name, "hash": flow.hash, "file": str(path), "masked": masked}
        )
        return
    result(f"{path}: {flow.name}@{flow.hash}")
    for place in masked:
        note("omitted: ", place)
    quoted = shlex.quote(str(path))
    next_step(
        f"uncaged-workflow add {flow.name} {quoted}"
        if block is None
        else f"uncaged-workflow import {quoted}"
    )


def export_recording(
    engine: Engine,
    flow: Flow,
    form: ExportFormat,
    file: Path | None,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Write the recording that a web flow plays, to a file or to standard output."""
    from uncaged_browser.recording.flows import EXPORTS, recording_of
    from uncaged_bundles.builders.recipes.recipe_flow import flow_of
    from uncaged_bundles.storage.files import write_atomically

    bundle = engine.bundle(flow.hash)
    text = EXPORTS[form](recording_of(flow_of(bundle), flow.name))
    if file is not None:
        write_atomically(free_path(file, force=force).absolute(), text.encode())
    if as_json:
        where = {"text": text} if file is None else {"file": str(file)}
        json_output.document({"flow": flow.name, "hash": flow.hash, "format": form, **where})
    elif file is None:
        sys.stdout.write(text)
    else:
        result(f"{file}: {flow.name}@{flow.hash}")


def free_path(path: Path, *, force: bool) -> Path:
    if path.exists() and not force:
        raise RefusedError(f"{str(path)!r} already exists; choose another name or add --force")
    return path
