"""`export` writes a thread with its bundle and blobs into one file."""

from __future__ import annotations

from pathlib import Path

import click
from uncaged_bundles.errors import RefusedError

from .. import jsonout
from ..arguments import json_option, thread_argument
from ..screen import next_step, result
from ..session import open_engine
from ..sizes import spell_bytes


@click.command()
@thread_argument
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@json_option
def command(thread: str, file: Path | None, force: bool, as_json: bool) -> None:
    """Write THREAD with its bundle and blobs to FILE (default: its id with .tar.zst). What was granted does not travel."""
    from uncaged_engine.parcel import export_thread

    engine = open_engine()
    thread_id = engine.store.locate_thread(thread)[1]
    path = file or Path(f"{thread_id}.tar.zst")
    if path.exists() and not force:
        raise RefusedError(f"{str(path)!r} is there already; choose another name or say --force")
    export_thread(engine, thread_id, path)
    size_bytes = path.stat().st_size
    if as_json:
        jsonout.document({"threadId": thread_id, "file": str(path), "bytes": size_bytes})
        return
    result(f"{path}: {spell_bytes(size_bytes)}")
    next_step(f"uncaged-workflow import {path}")
