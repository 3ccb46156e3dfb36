"""The verb `pause`: stops threads before their next effect. The pause is on disk and survives a
reboot.
"""

from __future__ import annotations

import click

from ..display import json_output
from ..display.output import next_step, result
from ..inputs.options import json_option, threads_argument
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@threads_argument
@shared_option
@json_option
def command(threads: tuple[str, ...], as_json: bool) -> None:
    """Pause threads before their next effect. The effect in flight ends first, except the turn of
    an ACP agent, which is cancelled.
    """
    engine = open_engine()
    ids = list(dict.fromkeys(engine.store.locate_thread(text)[1] for text in threads))
    for thread_id in ids:
        engine.pause(thread_id)
        if not as_json:
            busy = engine.thread(thread_id).summary.status == "running"
            result(
                f"{thread_id} will pause when its current step has ended"
                if busy
                else f"paused {thread_id}"
            )
            next_step(f"uncaged-workflow resume {thread_id}")
    if as_json:
        json_output.document({"threadIds": ids})
