"""The verb `conversation`: conversations, and the requests that they have at present."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError
from uncaged_dispatcher.conversations import catalog
from uncaged_dispatcher.conversations.log import read_records, read_state
from uncaged_dispatcher.conversations.reader import ConversationReader
from uncaged_dispatcher.conversations.sessions import ConversationSession

from ..display import json_output
from ..display.durations import ago
from ..display.open_requests import request_document, request_line, waiting_lines
from ..display.output import Piece, Styled, next_step, note, result, table, text_width
from ..display.sentences import record_lines
from ..display.table import render
from ..inputs.completion import complete_conversations
from ..inputs.consent import confirmed
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_engine

if TYPE_CHECKING:
    from uncaged_dispatcher.conversations.catalog import ConversationSummary
    from uncaged_dispatcher.conversations.execution import Interpret
    from uncaged_dispatcher.conversations.records import ConversationState
    from uncaged_engine.api import Engine

HEADERS = ("conversation", "id", "requests", "used", "")
conversation_argument = click.argument(
    "conversation", required=False, metavar="[NAME]", shell_complete=complete_conversations
)


@click.group(
    subcommand_metavar="new | list | show | status | cancel | rename | switch | delete",
    no_args_is_help=True,
)
def command() -> None:
    """Make, list, show, rename, switch or delete conversations, and cancel their requests.

    A conversation keeps its requests in order, with what they named. NAME is a name, an id or a
    unique prefix of an id; without it, the current conversation is meant.
    """


@command.command("new", short_help="Make a conversation and switch to it.")
@click.argument("name", required=False, metavar="[NAME]")
@shared_option
@json_option
def new(name: str | None, as_json: bool) -> None:
    """Make a conversation and switch to it."""
    store = open_engine().store
    id = catalog.new_conversation(store, name, now_ms())
    if as_json:
        json_output.document({"conversationId": id, "name": read_state(store, id).name})
    else:
        result(f"{read_state(store, id).name}  {id}")


@command.command("list", short_help="List the conversations, those used last first.")
@shared_option
@json_option
def show_list(as_json: bool) -> None:
    """List the conversations, those used last first."""
    found = catalog.list_conversations(open_engine().store)
    if as_json:
        json_output.document([summary_document(one) for one in found])
        return
    if not found:
        note("no conversations yet")
        next_step('uncaged-workflow do "what can you do"')
        return
    now = now_ms()
    rows: list[list[Piece]] = [
        [one.name or "?", one.id, str(one.settled), ago(one.updated_ms, now), remark(one)]
        for one in found
    ]
    table(render(HEADERS, rows, width=text_width(sys.stdout)))


@command.command("show", short_help="Show the requests of a conversation and their results.")
@conversation_argument
@click.option(
    "--after",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Show only the records after number N.",
)
@shared_option
@json_option
def show(conversation: str | None, after: int, as_json: bool) -> None:
    """Show the requests of a conversation and their results."""
    store = open_engine().store
    id = catalog.chosen_conversation(store, conversation, now_ms())
    records = read_records(store, id, after)
    if as_json:
        state = read_state(store, id)
        json_output.document(
            {
                "conversationId": id,
                "name": state.name,
                "settings": state.settings,
                "records": [*records],
            }
        )
        return
    is_empty = True
    for record in records:
        for line in record_lines(record):
            result(*line)
            is_empty = False
    if is_empty:
        note("no requests yet" if after == 0 else f"nothing came after record {after}")
    for one in read_state(store, id).open:
        if one.question is not None:
            note(f"request {one.request.id} waits for an answer:")
            for text in waiting_lines(request_document(one, None)):
                next_step(text)


@command.command("status", short_help="Show the requests that run, wait or are queued.")
@conversation_argument
@shared_option
@json_option
def status(conversation: str | None, as_json: bool) -> None:
    """Show the requests of a conversation that run, wait for an answer, or are queued.

    Those of a command that ended go on with the next request.
    """
    engine = open_engine()
    id = catalog.chosen_conversation(engine.store, conversation, now_ms())
    state = read_state(engine.store, id)
    snapshot = _session(engine, id).snapshot()
    found = [request_document(one, snapshot) for one in state.open]
    if as_json:
        json_output.document(
            {
                "conversationId": id,
                "name": state.name,
                "inUse": snapshot is not None,
                "activity": None if state.activity is None else state.activity.document(),
                "requests": found,
            }
        )
        return
    if not found:
        note(f"{state.name}: nothing runs")
    for one in found:
        result(*request_line(one))
        for line in waiting_lines(one):
            next_step(line)


@command.command("cancel", short_help="Cancel a request; its thread is killed.")
@click.argument("request", required=False, metavar="[REQUEST]")
@click.option(
    "--conversation",
    "conversation",
    metavar="NAME",
    shell_complete=complete_conversations,
    help="The conversation to use instead of the current one.",
)
@shared_option
@json_option
def cancel(request: str | None, conversation: str | None, as_json: bool) -> None:
    """Cancel the request REQUEST: an id, a unique prefix of one, or a client's own id. Without it,
    the first one: the one that runs, or waits for an answer.
    """
    engine = open_engine()
    id = catalog.chosen_conversation(engine.store, conversation, now_ms())
    chosen = chosen_request(read_state(engine.store, id), request)
    found = _session(engine, id).cancel(chosen)
    if found == "not_found":
        raise NotFoundError(f"request {chosen} has ended meanwhile")
    if as_json:
        json_output.document({"conversationId": id, "requestId": chosen, "cancelled": found})
    else:
        result(f"{found.replace('_', ', ')}  {chosen}")


@command.command("rename", short_help="Rename a conversation.")
@click.argument("names", nargs=-1, required=True, metavar="[NAME] NEW")
@shared_option
@json_option
def rename(names: tuple[str, ...], as_json: bool) -> None:
    """Rename a conversation."""
    if len(names) > 2:
        raise click.UsageError("a name with spaces needs quotes", click.get_current_context())
    engine = open_engine()
    former = names[0] if len(names) == 2 else None
    id = catalog.chosen_conversation(engine.store, former, now_ms())
    catalog.check_new_name(engine.store, names[-1], id)
    ConversationSession(engine, id, no_reader, now_ms).change_settings({"name": names[-1]})
    if as_json:
        json_output.document({"conversationId": id, "name": names[-1]})
    else:
        result(f"{names[-1]}  {id}")


@command.command("switch", short_help="Make a conversation the current one.")
@click.argument("conversation", metavar="NAME", shell_complete=complete_conversations)
@shared_option
@json_option
def switch(conversation: str, as_json: bool) -> None:
    """Make a conversation the current one."""
    store = open_engine().store
    id = catalog.find_conversation(store, conversation)
    catalog.switch_conversation(store, id)
    if as_json:
        json_output.document({"conversationId": id, "name": read_state(store, id).name})
    else:
        result(f"{read_state(store, id).name}  {id}")


@command.command("delete", short_help="Delete a conversation; its threads stay.")
@click.argument("conversation", metavar="NAME", shell_complete=complete_conversations)
@click.option("--yes", is_flag=True, help="Delete without asking.")
@shared_option
@json_option
def delete(conversation: str, yes: bool, as_json: bool) -> None:
    """Delete a conversation with what it remembers; its threads stay."""
    store = open_engine().store
    id = catalog.find_conversation(store, conversation)
    confirmed(f"delete conversation {conversation}", yes=yes)
    catalog.delete_conversation(store, id)
    if as_json:
        json_output.document({"conversationId": id})
    else:
        result(f"deleted {id}")


def chosen_request(state: ConversationState, text: str | None) -> str:
    """Return the id of the open request that *text* names; of the first one without a text.

    Raises:
        NotFoundError: there is none. UsageError: there are several.
    """
    ids = {one.request.id: one.request.client_id for one in state.open}
    if not ids:
        raise NotFoundError(f"conversation {state.name} has no request that runs or is queued")
    if text is None:
        return next(iter(ids))
    found = [id for id, client in ids.items() if text.upper() == id or text == client]
    found = found or [id for id in ids if text and id.startswith(text.upper())]
    if len(found) > 1:
        raise UsageError(f"{text!r} is the start of {len(found)} request ids; type more of it")
    if not found:
        raise NotFoundError(f"no open request {text[:80]!r}; there are {', '.join(ids)}")
    return found[0]


def _session(engine: Engine, id: str) -> ConversationSession:
    return ConversationSession(engine, id, lambda: ConversationReader(engine, now_ms), now_ms)


def no_reader() -> Interpret:
    """Refuse to read sentences: a change of settings submits none."""
    raise RefusedError("this command submits no requests")


def remark(one: ConversationSummary) -> Piece:
    """Return the last column of a list: what is special about a conversation."""
    if one.problem is not None:
        return Styled(one.problem, "red")
    words = [
        *(["current"] if one.is_current else []),
        *(["in use"] if one.is_held else []),
        *([f"{one.open} open"] if one.open else []),
        *(["waits for an answer"] if one.is_waiting else []),
    ]
    return ", ".join(words)


def summary_document(one: ConversationSummary) -> dict[str, object]:
    """Return a conversation of a list as JSON."""
    return {
        "conversationId": one.id,
        "name": one.name,
        "createdMs": one.created_ms,
        "usedMs": one.updated_ms,
        "requests": one.settled,
        "open": one.open,
        "current": one.is_current,
        "inUse": one.is_held,
        "problem": one.problem,
    }
