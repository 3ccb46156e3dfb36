"""The verb `notify`: lists the threads that wait, and those that stopped while they were not
followed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import NotFoundError
from uncaged_engine.stores.endings import UNSUCCESSFUL
from uncaged_engine.threads.notifications import mark_all_seen, mark_seen

from ..display import json_output
from ..display.death_notices import notify_deaths
from ..display.durations import ago
from ..display.output import PROGRAM, Piece, Styled, next_step, note, result, status, text_width
from ..display.output import table as print_table
from ..display.table import render
from ..inputs.groups import DefaultGroup
from ..inputs.options import json_option
from ..inputs.stores import inherited, shared_option
from ..main import run
from ..runtime import now_ms, open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import ThreadSummary


@click.group(cls=DefaultGroup, default="list", subcommand_metavar="[list] | show N | clear | test")
def command() -> None:
    """List the threads that wait for an answer, and those that stopped while they were not followed
    on a terminal: started with --detach, left with Ctrl-C, or started by another program.

    Threads that another thread started, and those that a person paused or killed, are not listed.
    """


@command.command("list", short_help="List what the person may not know of.")
@shared_option
@json_option
def list_notifications(as_json: bool) -> None:
    """List what changed since the last `notify clear`, the last change first; the first list has
    one day. Of a shared store the newest 1,000 threads are looked at.
    """
    engine = open_engine()
    found = engine.unseen()
    show_pending(found, as_json=as_json)
    notify_deaths(engine, found)


def show_pending(found: list[ThreadSummary], *, as_json: bool) -> None:
    """Print the notifications of a store."""
    if as_json:
        json_output.document(
            {
                "notifications": [
                    {
                        "number": number,
                        "threadId": one.thread_id,
                        "flow": one.name,
                        "status": one.status,
                        "success": one.success,
                        "message": one.message,
                        "updatedMs": one.updated_ms,
                    }
                    for number, one in enumerate(found, 1)
                ]
            }
        )
        return
    if not found:
        note("nothing new")
        return
    now = now_ms()
    rows: list[list[Piece]] = [
        [
            str(number),
            Styled(one.thread_id, "cyan"),
            one.name or "-",
            Styled(UNSUCCESSFUL, "yellow") if one.success is False else status(one.status),
            ago(one.updated_ms, now),
            one.problem or one.message or "",
        ]
        for number, one in enumerate(found, 1)
    ]
    headers = ("no.", "thread", "flow", "status", "changed", "message")
    print_table(render(headers, rows, width=text_width(sys.stdout)))
    waiting = next((one for one in found if one.status == "waiting"), None)
    if waiting is not None:
        next_step(f"{PROGRAM} answer {waiting.thread_id}")


@command.command("show", short_help="Show the thread of a notification.")
@click.argument("number", type=click.IntRange(min=1), metavar="N")
@shared_option
@json_option
def show(number: int, as_json: bool) -> int:
    """Show the thread of notification N, and remove it from the list unless it waits."""
    engine = open_engine()
    found = engine.unseen()
    if number > len(found):
        raise NotFoundError(f"no notification {number}; 'uncaged-workflow notify' lists them")
    chosen = found[number - 1]
    with inherited():
        code = run(["thread", "show", chosen.thread_id, *(["--json"] if as_json else [])])
    mark_seen(engine.store, chosen.thread_id, chosen.updated_ms)
    return code


@command.command("test", short_help="Send a notification as config.yaml says.")
@json_option
def test(as_json: bool) -> None:
    """Send a notification by the command or the webhook of config.yaml, and print the result."""
    from uncaged_engine.door.notifications import Notification

    notification = Notification(
        event="test",
        subject="test",
        flow="",
        message="a notification of uncaged-workflow arrives here",
        timestamp_ms=now_ms(),
    )
    open_engine(of_machine=True).notify(notification)
    if as_json:
        json_output.document({"delivered": True})
    else:
        result("delivered")


@command.command("clear", short_help="Empty the list.")
@shared_option
@json_option
def clear(as_json: bool) -> None:
    """Empty the list, also of the threads that wait: `threads --status waiting` lists these."""
    now = now_ms()
    mark_all_seen(open_engine().store, now)
    if as_json:
        json_output.document({"sinceMs": now})
    else:
        result("cleared")
