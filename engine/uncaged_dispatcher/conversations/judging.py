"""Requests that feedback is about, with what was learned from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles.errors import NotFoundError, RefusedError
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store

from ..constructions.kept import Constructions, LearnedConstruction
from .log import read_records
from .requests import ConversationRequest

LAST = "last"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRequest:
    """A settled request that feedback is about. reading, thread: None if it had none."""

    request: ConversationRequest
    reading: Mapping[str, Any] | None
    thread: str | None


def judged_request(store: Store, conversation: str, text: str) -> JudgedRequest:
    """Return the request that *text* names: its id, the number of one of its records, or ``last``
    for the one that was settled last.

    Raises:
        NotFoundError: there is none. RefusedError: it is not settled.
    """
    records = list(read_records(store, conversation))
    id = _request_id(records, text)
    request: ConversationRequest | None = None
    reading: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    for record in records:
        match record:
            case {"request": {"id": found} as document} if found == id:
                request = ConversationRequest.read(document, strict=False)
            case {"reading": Mapping() as found, "of": owner} if owner == id:
                reading = found
            case {"result": Mapping() as found, "of": owner} if owner == id:
                result = found
            case _:
                pass
    if request is None:
        raise NotFoundError(
            f"no request {text[:80]!r} in this conversation; 'uncaged-workflow conversation show' has their numbers"
        )
    if result is None:
        raise RefusedError(f"request {text[:80]!r} is not settled yet; give feedback after that")
    return JudgedRequest(request=request, reading=reading, thread=result.get("threadId"))


def learned_by(store: Store, judged: JudgedRequest) -> list[LearnedConstruction]:
    """Return the constructions that read a request, or were learned from it."""
    by_construction: set[tuple[str, str]] = set()
    match judged.reading:
        case {"by": "construction", "rule": str(rule), "calls": [{"flow": str(flow)}]}:
            by_construction.add((flow, rule))
        case _:
            pass
    return [
        one
        for one in Constructions(store).all()
        if (one.construction.flow, one.construction.pattern) in by_construction
        or (judged.thread is not None and one.construction.thread == judged.thread)
    ]


def _request_id(records: list[dict[str, Any]], text: str) -> str | None:
    """Return the id of the request that *text* names."""
    if text == LAST:
        settled = (record["of"] for record in reversed(records) if "result" in record)
        return next(settled, None)
    if text.isascii() and text.isdigit() and len(text) < len(str(len(records))) + 1:
        found = next((one for one in records if one["seq"] == int(text)), {})
        request = found.get("request")
        return str(request["id"]) if isinstance(request, Mapping) else found.get("of")
    return text.upper()
