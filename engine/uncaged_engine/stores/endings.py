"""What the last line of a journal says about its end, for stores that list threads by it."""

from __future__ import annotations

import re
from collections.abc import Collection

from uncaged_bundles.records import dataclass

UNSUCCESSFUL = "unsuccessful"
"""The word for ``completed`` where the result says ``success: false``."""
OPEN = ""
"""The word for a thread without an end."""
ENDINGS: frozenset[str] = frozenset(("completed", UNSUCCESSFUL, "failed", "killed", "limit"))
_WORD = re.compile(rb'\{"end":"([a-z]+)"')
_FAILED_RESULT = b'"success":false'
_TIMESTAMP = re.compile(rb',"timestamp":([0-9]{1,18})(?:,"ranMs":[0-9]+)?,"chain":"[0-9A-Z]+"\}\n$')
_TAIL_BYTES = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEnding:
    """word: of an end record; `UNSUCCESSFUL` for a completion that may be without success; `OPEN`
    for a thread without an end. ended_ms: the time that the record states; 0 without one.
    """

    word: str = OPEN
    ended_ms: int = 0


def ending_of(line: bytes) -> JournalEnding:
    """Return what the last line of a journal, sealed, says."""
    found = _WORD.match(line)
    if found is None:
        return JournalEnding()
    word = found[1].decode()
    if word == "completed" and _FAILED_RESULT in line:
        word = UNSUCCESSFUL
    stamp = _TIMESTAMP.search(line, max(0, len(line) - _TAIL_BYTES))
    return JournalEnding(word=word, ended_ms=0 if stamp is None else int(stamp[1]))


def endings_of(statuses: Collection[str]) -> frozenset[str] | None:
    """Return the endings of all threads that may have one of some statuses (`ThreadFilter`); None
    if that is any: a damaged thread may have each of them.
    """
    if not statuses or "corrupt" in statuses:
        return None
    found = set(statuses) & ENDINGS
    if "completed" in found:
        found.add(UNSUCCESSFUL)
    if set(statuses) - ENDINGS:
        found.add(OPEN)
    return frozenset(found)
