"""The verb `queues`: lists a shared store's queues and its workers."""

from __future__ import annotations

import sys

import click

from ..display import json_output
from ..display.output import note, result, table, text_width
from ..display.queue_list import (
    QUEUE_HEADERS,
    WORKER_HEADERS,
    queue_row,
    queues_document,
    spell_store,
    worker_row,
)
from ..display.table import render
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_shared


@click.command()
@shared_option
@json_option
def command(as_json: bool) -> None:
    """List the queues of a shared store, by flow: settings, how many threads wait and run, and why
    they wait; then the workers.
    """
    engine = open_shared()
    settings, queues = engine.queues()
    workers = engine.workers()
    if as_json:
        json_output.document(queues_document(settings, queues, workers))
        return
    width = text_width(sys.stdout)
    if settings.concurrency is not None or settings.agents is not None:
        result(f"all threads: {spell_store(settings)}")
    if queues:
        table(render(QUEUE_HEADERS, [queue_row(one) for one in queues], width=width))
    else:
        note("no thread waits or runs, and no queue has settings")
    if workers:
        now = now_ms()
        table(render(WORKER_HEADERS, [worker_row(one, now) for one in workers], width=width))
    else:
        note("the store has no worker")
