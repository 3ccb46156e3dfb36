"""Output about the requests of a conversation that are not settled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uncaged_bundles.clean import clean_line

from .output import PROGRAM, Piece, Styled, note

if TYPE_CHECKING:
    from uncaged_dispatcher.conversations.records import OpenRequest


def request_document(one: OpenRequest, snapshot: Mapping[str, Any] | None) -> dict[str, object]:
    """Return an open request as JSON. snapshot: the holder's queue; None if no process holds the
    conversation, and the request goes on with the next holder.
    """
    running = None if snapshot is None else snapshot["running"]
    if one.question is not None:
        state = "waiting"
    elif running is not None and running["id"] == one.request.id:
        state = running["state"]
    else:
        state = "left" if one.has_begun else "queued"
    return {
        "requestId": one.request.id,
        "clientId": one.request.client_id,
        "content": one.request.content,
        "state": state,
        "threadId": None if one.thread is None else one.thread["threadId"],
        "question": one.question,
    }


def request_line(one: Mapping[str, Any]) -> Sequence[Piece]:
    """Return the line for an open request."""
    state = Styled(f"{one['state']:<10}", "yellow" if one["state"] == "waiting" else "cyan")
    return one["requestId"], "  ", state, clean_line(one["content"])


def waiting_lines(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a person can do about a request that waits for an answer."""
    if one["question"] is None:
        return
    note(f"  {clean_line(one['question']['question'])}")
    thread = one["question"].get("threadId")
    if thread is not None:
        yield f"{PROGRAM} answer {thread} TEXT"
    yield f"{PROGRAM} conversation cancel {one['requestId']}"
