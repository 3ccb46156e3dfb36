"""Early start of the worker that a sentence needs, while the command is still being imported.

The flow is a guess: by the sentence's words, else by a reading without the conversation's context.
A worker that gets no request ends.
"""

from __future__ import annotations

import sqlite3

from uncaged_bundles.errors import UncagedError
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_engine.services.launching import Launching, rouse_flow

from ..grammar.sentences import Sentence, index_words
from ..index.guess import likely_flow
from ..readings.directives import split_directive


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoreAlone:
    """What an index needs of the engine."""

    store: Store
    registry: Registry


def rouse_sentence(text: str) -> Launching | None:
    """Start the worker of the flow that probably reads the sentence, unless one listens.

    Returns:
        None as well after an error, which the request itself will report.
    """
    try:
        sentence = Sentence(split_directive(text).readable())
        store = Store.open()
        flow = likely_flow(store, index_words(sentence.folded)) or _read_flow(store, sentence)
        return None if flow is None else rouse_flow(flow)
    except (UncagedError, OSError, ValueError, sqlite3.Error):
        return None


def _read_flow(store: Store, sentence: Sentence) -> str | None:
    """Return the flow that reads a sentence best, unless a person marked it."""
    # 20 ms of CPU, which the words mostly spare
    from ..index.rule_index import RuleIndex
    from ..readings.context import SentenceContext
    from ..readings.reading import SentenceReader

    index = RuleIndex(_StoreAlone(store=store, registry=Registry(store)))
    try:
        candidates = SentenceReader(index).candidates(sentence, SentenceContext())
        able = (one for one in candidates if not (one.refused or one.disabled or one.away))
        first = next(able, None)
    finally:
        index.close()
    if first is None or len(first.calls) != 1 or first.confirm:
        return None
    return first.calls[0].flow
