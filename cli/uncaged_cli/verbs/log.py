"""The verb `log`: prints the debug logs of threads, and follows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click
from uncaged_bundles.clean import clean

from ..display import json_output
from ..display.durations import clock_time
from ..display.output import Styled, note, table
from ..inputs.completion import complete_threads
from ..inputs.options import json_option
from ..runtime import now_ms, open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import Engine
    from uncaged_engine.threads.logs import LogLine

RECENT_LINES = 100
POLL_S = 0.2

Reader = Callable[[], "list[LogLine]"]


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
@json_option
def command(thread: str | None, follow: bool, limit: int | None, as_json: bool) -> None:
    """Print the debug log of THREAD, or of all threads in the order of time.

    It has the reports of workers, sandboxes and agents. Lines of threads that are taken up later,
    by whichever worker, are followed, too.
    """
    engine = open_engine()
    lines, read = of_thread(engine, thread, limit) if thread else of_store(engine, limit)
    show(lines, as_json=as_json)
    if not lines and not follow:
        note("no lines")
    while follow:
        time.sleep(POLL_S)
        show(read(), as_json=as_json)


def of_thread(engine: Engine, text: str, limit: int | None) -> tuple[list[LogLine], Reader]:
    """Return the last lines of a thread, and the reader of the next ones."""
    from uncaged_engine.threads.logs import ThreadLog, last

    bundle, thread, _ = engine.store.locate_thread(text)
    log = ThreadLog(engine.store, bundle, thread)
    lines = log.new_lines()
    return (lines if limit is None else last(lines, limit)), log.new_lines


def of_store(engine: Engine, limit: int | None) -> tuple[list[LogLine], Reader]:
    """Return the last lines of all threads, and the reader of the next ones."""
    from uncaged_engine.threads.logs import StoreLog

    log = StoreLog(engine.store, now_ms())
    return log.recent_lines(RECENT_LINES if limit is None else limit), log.new_lines


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
