"""The verb `threads`: lists threads, newest first. A damaged thread is marked and hides no
other.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import NotFoundError
from uncaged_engine.stores.endings import UNSUCCESSFUL
from uncaged_engine.threads.documents import summary_document
from uncaged_engine.threads.ending import EXIT_CODES

from ..display import json_output
from ..display.death_notices import notify_deaths
from ..display.output import next_step, note, result, text_width, width_of
from ..display.thread_list import short_ids, thread_table
from ..inputs.completion import complete_flows
from ..inputs.options import full_option, json_option
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import Engine, ThreadSummary


MOST_SHARED = 50
"""Threads of a shared store that are listed unless a number is named."""


@click.command()
@click.argument("flow", required=False, metavar="[FLOW]", shell_complete=complete_flows)
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice((*EXIT_CODES, UNSUCCESSFUL)),
    metavar="STATUS",
    help="List only threads with this status. May be repeated.",
)
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), metavar="N", help="List only the newest N."
)
@full_option
@shared_option
@json_option
def command(
    flow: str | None, statuses: tuple[str, ...], limit: int | None, full: bool, as_json: bool
) -> None:
    """List the threads of all flows, or of FLOW, newest first."""
    engine = open_engine()
    if limit is None and engine.is_shared:
        limit = MOST_SHARED
    threads = newest(engine, flow, statuses, limit)
    if engine.is_shared and len(threads) == limit == MOST_SHARED:
        note(f"the newest {MOST_SHARED} threads; -n N lists more")
    if as_json:
        json_output.document([summary_document(thread) for thread in threads])
        notify_deaths(engine, threads)
        return
    if not threads:
        note(f"no threads with status {' or '.join(statuses)}" if statuses else "no threads")
        next_step("uncaged-workflow run FLOW --prompt TEXT")
    width = text_width(sys.stdout, full=full)
    for line in thread_table(
        threads,
        short_ids(engine, threads, width=width_of(sys.stdout)),
        now_ms=now_ms(),
        width=width,
    ):
        result(*line)
    notify_deaths(engine, threads)


def newest(
    engine: Engine, flow: str | None, statuses: tuple[str, ...], limit: int | None
) -> list[ThreadSummary]:
    """Return the newest threads, or all, of a flow and with one of the statuses."""
    from uncaged_engine.threads.filtering import ThreadFilter, versions_of

    name, versions = versions_of(engine.registry, flow) if flow else (None, frozenset())
    wanted = ThreadFilter(statuses=statuses, flow=name, versions=versions)
    if limit is not None and (found := engine.page(wanted, limit=limit).threads):
        return list(found)
    if engine.is_shared:
        return []
    listed = of_flow(engine, flow) if flow else engine.threads()
    has_status, now = ThreadFilter(statuses=statuses), now_ms()
    return [thread for thread in listed if has_status.fits(thread, now)][:limit]


def of_flow(engine: Engine, flow: str) -> list[ThreadSummary]:
    """Return the threads of a flow or hash; threads of a removed flow are found by its name."""
    try:
        return engine.threads(flow)
    except NotFoundError:
        from uncaged_engine.api import of_flow as named

        left = named(engine.threads(), flow)
        if not left:
            raise
        return left
