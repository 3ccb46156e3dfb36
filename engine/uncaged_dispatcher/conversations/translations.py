"""Sentences of a store's conversations that a model translated into one call that ran well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.storage.store import Store

from ..calls import Call
from ..readings.pattern_sources import TranslatedSentence
from .catalog import newest_conversations
from .log import read_records
from .requests import ConversationRequest

MOST_READ = 500
"""Conversations that are read for it; those of a shared store come over the network."""


def translated_sentences(store: Store, flow: str) -> list[TranslatedSentence]:
    """Return the sentences that a model translated into a call of *flow*, with the call that ran:
    those of the newest conversations. A conversation that cannot be read is left out.
    """
    found: list[TranslatedSentence] = []
    for conversation in newest_conversations(store, MOST_READ):
        with suppress(UncagedError):
            found += _translated(read_records(store, conversation), flow)
    return found


def _translated(records: Iterator[Mapping[str, Any]], flow: str) -> Iterator[TranslatedSentence]:
    requests: dict[str, ConversationRequest] = {}
    ran: dict[str, Call | None] = {}
    for record in records:
        match record:
            case {"request": document}:
                request = ConversationRequest.read(document, strict=False)
                requests[request.id] = request
            case {"reading": {"by": "model", "calls": [_]}, "of": str(id)}:
                ran[id] = None
            case {"thread": {"flow": str(name), **more}, "of": str(id)} if id in ran:
                # the call that ran: the person may have edited the model's
                ran[id] = Call.read({"flow": name, "params": more.get("params")})
            case {"result": {"success": True}, "of": str(id)} if (call := ran.get(id)) is not None:
                if call.flow == flow and id in requests:
                    sentence = requests[id].directed.sentence
                    yield TranslatedSentence(sentence=sentence, call=call, origin="translation")
            case _:
                pass
