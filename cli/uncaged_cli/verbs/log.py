"""The verb `log`: prints the debug logs of threads, and follows them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from uncaged_bundles.clean import clean

from ..display import json_output
from ..display.durations import clock_time
from ..display.output import Styled, note, table
from ..inputs.completion import complete_threads
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import Engine
    from uncaged_engine.threads.logs import LogLine, LogReader

RECENT_LINES = 100
POLL_S = 0.2
SHARED_POLL_S = 1.0
"""A look at a shared store is a query or two."""


@click.command()
@click.argument("thread", required=False, metavar="[THREAD]", shell_complete=complete_threads)
@click.option("-f", "--follow", is_flag=True, help="Print new lines until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    "limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="Print only the last N entries, which may have several lines; without THREAD 100 if omitted.",
)
@shared_option
@json_option
def command(thread: str | None, follow: bool, limit: int | None, as_json: bool) -> None:
    """Print the debug log of THREAD, or of all threads in the order of time.

    It has the reports of workers, sandboxes and agents. Lines of threads that are taken up later,
    by whichever worker, are followed, too. A worker of a shared store writes the log of a thread
    there when it leaves the thread; without THREAD its newest threads are meant, 1,000 at most.
    """
    engine = open_engine()
    lines, log = of_thread(engine, thread, limit) if thread else of_store(engine, limit)
    show(lines, as_json=as_json)
    if not lines and not follow:
        note("no lines")
    while follow:
        time.sleep(SHARED_POLL_S if engine.is_shared else POLL_S)
        show(log.new_lines(), as_json=as_json)


def of_thread(engine: Engine, text: str, limit: int | None) -> tuple[list[LogLine], LogReader]:
    """Return the last lines of a thread, and the reader of the next ones."""
    from uncaged_engine.threads.logs import last

    log = engine.thread_log(text)
    lines = log.new_lines()
    return (lines if limit is None else last(lines, limit)), log


def of_store(engine: Engine, limit: int | None) -> tuple[list[LogLine], LogReader]:
    """Return the last lines of all threads, and the reader of the next ones."""
    log = engine.store_log()
    return log.recent_lines(RECENT_LINES if limit is None else limit), log


def show(lines: Iterable[LogLine], *, as_json: bool) -> None:
    """Print lines; the further lines of a text are indented."""
    if as_json:
        for line in lines:
            json_output.line(
                {
                    "threadId": line.thread_id,
                    "tag": line.tag,
                    "content": line.content,
                    "writtenMs": line.timestamp_ms,
                }
            )
        return
    table(
        (
            f"{clock_time(line.timestamp_ms)}.{line.timestamp_ms % 1000:03d}  ",
            Styled(line.thread_id, "cyan"),
            "  ",
            Styled(line.tag, "bright_black"),
            "  ",
            "\n    ".join(clean(line.content).splitlines()),
        )
        for line in lines
    )
