"""The verb `feedback`: keeps the person's opinion of a request, and forgets what misread it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from ..display import json_output
from ..display.output import PROGRAM, is_terminal, next_step, result
from ..display.sentences import spell_request
from ..inputs.options import conversation_option, json_option
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_engine
from .conversation import no_reader

if TYPE_CHECKING:
    from uncaged_dispatcher.conversations.judging import JudgedRequest
    from uncaged_engine.api import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedItem:
    """Something learned that read a request. remedy: the command that deletes it."""

    kind: Literal["construction", "choice"]
    name: str
    label: str
    delete: Callable[[], object]
    remedy: str


@click.command()
@click.argument("rating", type=click.Choice(("good", "bad")))
@click.argument("comment", nargs=-1, metavar="[COMMENT]")
@click.option(
    "--request",
    "request",
    default="last",
    metavar="N|last",
    help="A record of the request, as `conversation show` numbers them (default: the last result).",
)
@click.option("--yes", is_flag=True, help="Forget without asking.")
@conversation_option
@shared_option
@json_option
def command(
    *,
    rating: Literal["good", "bad"],
    comment: tuple[str, ...],
    request: str,
    yes: bool,
    conversation: str | None,
    as_json: bool,
) -> None:
    """Keep feedback on a request in the log of its conversation.

    If the request was read by a learned construction, or by a remembered choice, or a construction
    was learned from it, `feedback bad` asks whether to forget that. Nothing is sent anywhere.
    """
    from uncaged_dispatcher.conversations.catalog import chosen_conversation
    from uncaged_dispatcher.conversations.feedback import Feedback
    from uncaged_dispatcher.conversations.judging import judged_request
    from uncaged_dispatcher.conversations.sessions import ConversationSession

    feedback = Feedback(rating=rating, comment=" ".join(comment).strip())
    engine = open_engine()
    engine.read_sentences()
    id = chosen_conversation(engine.store, conversation, now_ms())
    judged = judged_request(engine.store, id, request)
    session = ConversationSession(engine, id, no_reader, now_ms)
    session.give_feedback(judged.request.id, feedback)
    items = learned_items(engine, id, judged) if rating == "bad" else []
    forgotten = [one for one in items if forgets(one, yes=yes, as_json=as_json)]
    for one in forgotten:
        one.delete()
    engine.keep_sentences()
    if as_json:
        learned = [
            {"kind": one.kind, "name": one.name, "pattern": one.label, "deleted": one in forgotten}
            for one in items
        ]
        json_output.document(
            {
                "conversationId": id,
                "requestId": judged.request.id,
                **{"comment": "", **feedback.document()},
                "learned": learned,
            }
        )
        return
    result(f"kept: {rating}: {spell_request(judged.request.document())}")
    for one in items:
        if one in forgotten:
            result(f"forgotten: {one.kind} {one.label}")
        else:
            next_step(one.remedy)


def learned_items(engine: Engine, conversation: str, judged: JudgedRequest) -> list[LearnedItem]:
    """Return what was learned that read the request, or from it."""
    from uncaged_dispatcher.constructions.kept import Constructions
    from uncaged_dispatcher.conversations.judging import learned_by
    from uncaged_dispatcher.conversations.log import read_state
    from uncaged_dispatcher.conversations.reader import ConversationReader

    constructions = Constructions(engine.store)
    items = []
    for found in learned_by(engine.store, judged):
        one = found.construction
        items.append(
            LearnedItem(
                kind="construction",
                name=one.id,
                label=one.pattern,
                delete=lambda id=one.id: constructions.remove(id),  # type: ignore[misc]
                remedy=f"{PROGRAM} constructions delete {one.id}",
            )
        )
    if judged.request.call is not None:
        return items
    reader = ConversationReader(engine, now_ms)
    key = reader.remembered_choice(judged.request, read_state(engine.store, conversation))
    if key is not None:
        items.append(
            LearnedItem(
                kind="choice",
                name=key,
                label=f"among {key}",
                delete=lambda: reader.forget_choice(key),
                remedy=f"{PROGRAM} feedback bad --yes",
            )
        )
    return items


def forgets(item: LearnedItem, *, yes: bool, as_json: bool) -> bool:
    """Ask whether to forget a learned item; without a terminal the answer is no."""
    if yes or as_json or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return yes
    return click.confirm(f"Forget the {item.kind} {item.label!r}?", default=False, err=True)
