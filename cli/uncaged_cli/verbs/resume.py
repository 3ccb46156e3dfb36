"""`resume` goes on with a thread from its journal and follows it."""

from __future__ import annotations

from typing import Any

import click
from uncaged_bundles.errors import UsageError

from .. import jsonout
from ..arguments import detach_option, json_option, limit_options, thread_argument
from ..follow import follow
from ..screen import result
from ..session import open_engine


@click.command()
@thread_argument
@limit_options
@click.option("--redo", is_flag=True, help="Perform again the effect that a crash left open.")
@click.option("--skip", is_flag=True, help="Go on without the effect that a crash left open.")
@click.option("--note", "remark", metavar="TEXT", help="Something to tell the next agent.")
@detach_option
@json_option
def command(
    *,
    thread: str,
    redo: bool,
    skip: bool,
    remark: str | None,
    detach: bool,
    as_json: bool,
    **limits: Any,
) -> int:
    """Go on with a thread that was paused, interrupted or killed, or that reached a limit, and follow it."""
    if redo and skip:
        raise UsageError("--redo and --skip exclude each other")
    from uncaged_engine.api import RunOptions

    engine = open_engine()
    before = engine.thread(thread)
    thread_id = before.summary.thread_id
    engine.resume(
        thread_id,
        redo=redo,
        skip=skip,
        note=remark,
        options=RunOptions(**limits),
    )
    if not detach:
        return follow(engine, thread_id, as_json=as_json, known_records=len(before.records))
    if as_json:
        jsonout.document({"threadId": thread_id})
    else:
        result(thread_id)
    return 0
