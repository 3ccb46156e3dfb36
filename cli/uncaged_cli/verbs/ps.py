"""The verb `ps`: lists the running threads and the current step of each."""

from __future__ import annotations

import os
import sys

import click
from uncaged_engine.threads.documents import summary_document

from ..display import json_output
from ..display.costs import spell_spent
from ..display.durations import spell
from ..display.output import Piece, Styled, note, result, text_width, width_of
from ..display.table import render
from ..display.thread_list import short_ids
from ..inputs.options import full_option, json_option
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_engine

HEADERS = ("id", "flow", "steps", "running", "used", "pid", "doing")
SHARED_HEADERS = tuple("worker" if header == "pid" else header for header in HEADERS)


@click.command()
@full_option
@shared_option
@json_option
def command(full: bool, as_json: bool) -> None:
    """List the running threads and what each is doing, including agents that wait for a free
    slot.
    """
    engine = open_engine()
    running = engine.running()
    work = {str(one["threadId"]): one for one in engine.working()}
    if as_json:
        json_output.document(
            [{**summary_document(thread), **work.get(thread.thread_id, {})} for thread in running]
        )
        return
    if not running:
        note("no thread is running")
        return
    now, width = now_ms(), text_width(sys.stdout, full=full)
    shown = short_ids(engine, running, width=width_of(sys.stdout))
    rows: list[list[Piece]] = []
    for thread in running:
        one = work.get(thread.thread_id, {})
        since = one.get("sinceMs")
        doing = f"{one.get('doing') or ''}{f' for {spell(now - since)}' if isinstance(since, int) and since else ''}"
        identity = Styled(shown.get(thread.thread_id, thread.thread_id), "cyan")
        rows.append(
            [
                identity,
                thread.name,
                str(thread.steps),
                spell(now - thread.started_ms),
                spell_spent(thread.spent),
                str(one.get("pid") or one.get("worker") or ""),
                doing,
            ]
        )
    headers = SHARED_HEADERS if engine.is_shared else HEADERS
    for line in render(headers, rows, width=width):
        result(*line)
    queued = sum(int(one.get("queued") or 0) for one in work.values())
    if queued:
        note(queue_note(queued, engine.config.limits.agents))


def queue_note(queued: int, limit: int) -> str:
    """Return why agents wait, and the setting that limits them."""
    from uncaged_agents.slots import held_slots, slots_directory

    active = held_slots(slots_directory(os.environ))
    waiting = "1 agent is" if queued == 1 else f"{queued} agents are"
    running = "1 agent is" if active == 1 else f"{active} agents are"
    return f"{waiting} queued: {running} running on this machine (all stores), and limits.agents in config.yaml is {limit}"
