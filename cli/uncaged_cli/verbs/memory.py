"""The verb `memory`: lists, shows and searches the things that a conversation's results named."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from uncaged_bundles.clean import clean_line, shorten
from uncaged_bundles.errors import NotFoundError

from ..display import json_output
from ..display.output import Piece, Styled, note, result, table, text_width
from ..display.sentences import spell_value
from ..display.table import render
from ..inputs.groups import DefaultGroup
from ..inputs.options import conversation_option, json_option
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_engine

if TYPE_CHECKING:
    from uncaged_dispatcher.memory.entity_memory import EntityMemory, RememberedEntity

VALUE_COLUMNS = 80
LISTED = 1_000
"""Things of a list, those that were named last."""


@click.group(
    cls=DefaultGroup, default="list", subcommand_metavar="[list] | show NAME | search TEXT"
)
def command() -> None:
    """List, show or search what the results of a conversation named: things that a later sentence
    can name.

    Nothing is deleted here: the memory is rebuilt from the conversation's log, and goes with it.
    """


@command.command("list", short_help="List the named things, the last one first.")
@conversation_option
@shared_option
@json_option
def list_things(conversation: str | None, as_json: bool) -> None:
    """List the things that were named last, each once, the last one first; at most 1,000."""
    id, memory = opened(conversation)
    print_things(id, memory.nearest(LISTED), "nothing was named in this conversation", as_json)


@command.command("show", short_help="Show the things with a name.")
@click.argument("name")
@conversation_option
@shared_option
@json_option
def show_thing(*, name: str, conversation: str | None, as_json: bool) -> None:
    """Show all things with the name NAME, in any case: type, value, and the thread that named
    them.
    """
    id, memory = opened(conversation)
    found = memory.named(name)
    if not found:
        raise NotFoundError(
            f"nothing is named {shorten(name, VALUE_COLUMNS)!r} here; 'uncaged-workflow memory search TEXT' finds similar names"
        )
    if as_json:
        json_output.document(document(id, found))
        return
    for one in found:
        result(Styled(one.name, "cyan"), f"  {one.type}")
        if one.value is not None:
            result(f"  value: {spell_value(one.value)}")
        result(f"  named in record {one.seq} of the conversation, by thread {one.thread}")


@command.command("search", short_help="Find things whose names are similar.")
@click.argument("text")
@conversation_option
@shared_option
@json_option
def search(*, text: str, conversation: str | None, as_json: bool) -> None:
    """Find the things whose names are like TEXT, the most similar first; at most nine."""
    from uncaged_dispatcher.memory.named_things import similar_things

    id, memory = opened(conversation)
    print_things(id, similar_things(memory, text), "no name is similar", as_json)


def opened(conversation: str | None) -> tuple[str, EntityMemory]:
    """Return a conversation's id and its memory."""
    from uncaged_dispatcher.conversations.catalog import chosen_conversation
    from uncaged_dispatcher.conversations.reader import memory_of

    store = open_engine().store
    id = chosen_conversation(store, conversation, now_ms())
    return id, memory_of(store, id)


def print_things(id: str, found: list[RememberedEntity], empty: str, as_json: bool) -> None:
    """Print things as a table; the note *empty* if there are none."""
    if as_json:
        json_output.document(document(id, found))
        return
    if not found:
        note(empty)
        return
    rows: list[list[Piece]] = [
        [
            Styled(clean_line(one.name), "cyan"),
            clean_line(one.type),
            "" if one.value is None else shorten(clean_line(spell_value(one.value)), VALUE_COLUMNS),
        ]
        for one in found
    ]
    table(render(("name", "type", "value"), rows, width=text_width(sys.stdout)))


def document(id: str, found: Iterable[RememberedEntity]) -> dict[str, object]:
    """Return things as JSON."""
    entities = [
        {**one.document(), "seq": one.seq, "requestId": one.request, "threadId": one.thread}
        for one in found
    ]
    return {"conversationId": id, "entities": entities}
