"""The verb `token`: prints the tokens and the cost of a conversation's requests, or of threads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.costs import spell_spent
from ..display.output import Piece, Styled, note, result, table, text_width
from ..display.sentences import spell_request
from ..display.table import render
from ..inputs.completion import complete_threads
from ..inputs.options import conversation_option, json_option
from ..runtime import now_ms, open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import Engine
    from uncaged_engine.services.costs import Spent

UNKNOWN = "a removed thread: usage unknown"


@click.command()
@conversation_option
@click.option(
    "--thread",
    "threads",
    multiple=True,
    metavar="THREAD",
    shell_complete=complete_threads,
    help="Print the usage of this thread instead. May be repeated.",
)
@json_option
def command(*, conversation: str | None, threads: tuple[str, ...], as_json: bool) -> None:
    """Print the tokens and the cost of each request of the current conversation, and their sum.

    A request's usage is that of its thread with its children, and of the threads in which a model
    was asked what the request means.
    """
    if threads and conversation is not None:
        raise UsageError("--thread and --conversation exclude each other")
    engine = open_engine(of_machine=True)
    if threads:
        show_threads(engine, threads, as_json=as_json)
    else:
        show_requests(engine, conversation, as_json=as_json)


def show_requests(engine: Engine, conversation: str | None, *, as_json: bool) -> None:
    """Print the usage of a conversation's requests."""
    from uncaged_dispatcher.conversations.catalog import chosen_conversation
    from uncaged_dispatcher.conversations.usage import total_usage, usage_by_request

    id = chosen_conversation(engine.store, conversation, now_ms())
    found = usage_by_request(engine, id)
    total = total_usage(one.spent for one in found)
    if as_json:
        requests = [one.document() for one in found]
        used = {"used": total.document()}
        json_output.document({"conversationId": id, "requests": requests, **used})
        return
    rows: list[list[Piece]] = [
        [str(one.seq), spell_request(one.request.document()), spell_spent(one.spent) or UNKNOWN]
        for one in found
        if spell_spent(one.spent) or one.removed
    ]
    if rows:
        table(render(("no.", "request", "used"), rows, width=text_width(sys.stdout)))
    show_total(total, len(found), "request")


def show_threads(engine: Engine, threads: tuple[str, ...], *, as_json: bool) -> None:
    """Print the usage of threads."""
    from uncaged_dispatcher.conversations.usage import total_usage

    names = [engine.store.locate_thread(text)[1] for text in threads]
    found = [engine.thread(name) for name in dict.fromkeys(names)]
    total = total_usage(one.spent for one in found)
    if as_json:
        listed = [
            {
                "threadId": one.summary.thread_id,
                "flow": one.summary.name,
                "used": one.spent.document(),
            }
            for one in found
        ]
        json_output.document({"threads": listed, "used": total.document()})
        return
    rows: list[list[Piece]] = [
        [
            Styled(one.summary.thread_id, "cyan"),
            one.summary.name,
            spell_spent(one.spent) or "no tokens",
        ]
        for one in found
    ]
    table(render(("thread", "flow", "used"), rows, width=text_width(sys.stdout)))
    show_total(total, len(found), "thread")


def show_total(total: Spent, count: int, what: str) -> None:
    """Print the sum, or that no model was used."""
    several = f"{count} {what}{'' if count == 1 else 's'}"
    if spell_spent(total):
        result(f"{several}: {spell_spent(total)}")
    else:
        note(f"{several} used no tokens that are known")
