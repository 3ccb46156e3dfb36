"""The verb `conversation`: makes, lists, shows, renames, switches and deletes conversations."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import RefusedError
from uncaged_dispatcher.conversations import catalog
from uncaged_dispatcher.conversations.log import read_records, read_state
from uncaged_dispatcher.conversations.sessions import ConversationSession

from ..display import json_output
from ..display.durations import ago
from ..display.output import Piece, Styled, next_step, note, result, table, text_width
from ..display.sentences import record_lines
from ..display.table import render
from ..inputs.completion import complete_conversations
from ..inputs.consent import confirmed
from ..inputs.options import json_option
from ..runtime import now_ms, open_engine

if TYPE_CHECKING:
    from uncaged_bundles.storage.store import Store
    from uncaged_dispatcher.conversations.catalog import ConversationSummary
    from uncaged_dispatcher.conversations.execution import Interpret

HEADERS = ("conversation", "id", "requests", "used", "")
conversation_argument = click.argument(
    "conversation", required=False, metavar="[NAME]", shell_complete=complete_conversations
)


@click.group(
    subcommand_metavar="new | list | show | rename | switch | delete", no_args_is_help=True
)
def command() -> None:
    """Make, list, show, rename, switch or delete conversations.

    A conversation keeps its requests in order, with what they named. NAME is a name, an id or a
    unique prefix of an id; without it, the current conversation is meant.
    """


@command.command("new", short_help="Make a conversation and switch to it.")
@click.argument("name", required=False, metavar="[NAME]")
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
@json_option
def show(conversation: str | None, after: int, as_json: bool) -> None:
    """Show the requests of a conversation and their results."""
    store = open_engine().store
    id = find(store, conversation)
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
    for record in records:
        for line in record_lines(record):
            result(*line)


@command.command("rename", short_help="Rename a conversation.")
@click.argument("names", nargs=-1, required=True, metavar="[NAME] NEW")
@json_option
def rename(names: tuple[str, ...], as_json: bool) -> None:
    """Rename a conversation."""
    if len(names) > 2:
        raise click.UsageError("a name with spaces needs quotes", click.get_current_context())
    engine = open_engine()
    id = find(engine.store, names[0] if len(names) == 2 else None)
    catalog.check_new_name(engine.store, names[-1], id)
    ConversationSession(engine, id, no_reader, now_ms).change_settings({"name": names[-1]})
    if as_json:
        json_output.document({"conversationId": id, "name": names[-1]})
    else:
        result(f"{names[-1]}  {id}")


@command.command("switch", short_help="Make a conversation the current one.")
@click.argument("conversation", metavar="NAME", shell_complete=complete_conversations)
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


def find(store: Store, text: str | None) -> str:
    """Return the id of the named conversation, or of the current one."""
    if text is None:
        return catalog.current_conversation(store, now_ms())
    return catalog.find_conversation(store, text)


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
