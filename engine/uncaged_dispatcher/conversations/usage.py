"""Token usage of the requests of a conversation: of the threads in which a model was asked what a
request means, and of its own thread with its children.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from uncaged_bundles.ids import is_thread_id
from uncaged_bundles.records import dataclass
from uncaged_engine.api import Engine
from uncaged_engine.services.costs import NOTHING, Spent

from .log import read_records
from .requests import ConversationRequest

_ASKED = "thread "
"""Begins the rule of a model's reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUsage:
    """Usage of one request. seq: the number of the request's record. removed: those of its threads
    that do not exist any more; what they used is unknown.
    """

    seq: int
    request: ConversationRequest
    threads: tuple[str, ...]
    removed: tuple[str, ...]
    spent: Spent

    def document(self) -> dict[str, object]:
        """Return the usage as JSON."""
        return {
            "seq": self.seq,
            "requestId": self.request.id,
            "request": self.request.content,
            "threadIds": list(self.threads),
            "removed": list(self.removed),
            "used": self.spent.document(),
        }


def usage_by_request(engine: Engine, conversation: str) -> list[RequestUsage]:
    """Return the usage of each request of a conversation that started a thread, in order.

    Raises:
        NotFoundError, DamagedError: the conversation cannot be read.
    """
    requests: dict[str, tuple[int, ConversationRequest]] = {}
    threads: dict[str, dict[str, None]] = {}
    started: set[str] = set()
    for record in read_records(engine.store, conversation):
        if "request" in record:
            request = ConversationRequest.read(record["request"], strict=False)
            requests[request.id] = (record["seq"], request)
        elif (thread := _thread_of(record)) is not None and is_thread_id(thread):
            threads.setdefault(str(record.get("of")), {})[thread] = None
            # recorded before it is started, a request's own thread may never have been
            started |= set() if "thread" in record else {thread}
    known = {str(one.thread_id): one.spent for one in engine.threads()} if threads else {}
    return [
        RequestUsage(
            seq=seq,
            request=request,
            threads=tuple(threads[id]),
            removed=tuple(one for one in threads[id] if one not in known and one in started),
            spent=total_usage(known.get(thread, NOTHING) for thread in threads[id]),
        )
        for id, (seq, request) in requests.items()
        if id in threads
    ]


def total_usage(usages: Iterable[Spent]) -> Spent:
    """Add up usages."""
    total = NOTHING
    for spent in usages:
        total = total.plus(spent.document())
    return total


def _thread_of(record: Mapping[str, Any]) -> str | None:
    """Return the thread that a record is about."""
    match record:
        case {"thread": {"threadId": str(thread)}} | {"translation": {"threadId": str(thread)}}:
            return thread
        case {"reading": {"by": "model", "rule": str(rule)}} if rule.startswith(_ASKED):
            # in logs of former versions only the reading names the thread
            return rule.removeprefix(_ASKED)
        case {"result": {"threadId": str(thread)}}:
            return thread
        case _:
            return None
