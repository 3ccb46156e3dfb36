"""The verb `kill`: ends threads immediately, with all processes of their agents."""

from __future__ import annotations

from pathlib import Path

import click
from uncaged_bundles.errors import RefusedError
from uncaged_engine.threads.ending import ending_of

from ..display import json_output
from ..display.output import next_step, note, result
from ..inputs.options import json_option, threads_argument
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@threads_argument
@shared_option
@json_option
def command(threads: tuple[str, ...], as_json: bool) -> None:
    """End threads immediately; the agent in flight is stopped with all its processes."""
    engine = open_engine()
    ids = list(dict.fromkeys(engine.store.locate_thread(text)[1] for text in threads))
    for thread_id in ids:
        engine.kill(thread_id)
        # wait until the agent in flight and all its processes are gone
        *_, last = engine.follow(thread_id)
        if last.body["status"] != "killed":
            raise RefusedError(
                f"thread {thread_id} is {last.body['status']}: it ended before it could be killed"
            )
        if not as_json:
            result(f"killed {thread_id}")
            killed = ending_of(engine.thread(thread_id), engine.store, Path.cwd())
            if killed.message:
                note(killed.message)
            for command_line in killed.commands:
                next_step(command_line)
    if as_json:
        json_output.document({"threadIds": ids})
