"""`import` takes in a thread from a file, which is treated as hostile; nothing in it is granted."""

from __future__ import annotations

from pathlib import Path

import click

from .. import jsonout
from ..arguments import json_option
from ..screen import next_step, result
from ..session import open_engine


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def command(file: Path, as_json: bool) -> None:
    """Take in a thread with its bundle from FILE. Its bundle is not granted anything and has no name here."""
    from uncaged_engine.parcel import import_thread

    engine = open_engine()
    thread_id = import_thread(engine, file)
    if as_json:
        jsonout.document({"threadId": thread_id})
        return
    result(f"imported {thread_id}")
    next_step(f"uncaged-workflow verify {thread_id}")
