"""Message of a thread in a list: why it is in its state, in a few words from its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..journal.codec import decode
from ..journal.labels import effect_label
from ..journal.recover import History, Pending
from .states import State

_WAIT = b'"control":"wait"'
_VOID = b'"void":'
MAX_NAMED = 3
"""How many effects are named one by one."""


def reason(
    history: History, state: State, data: bytes, *, undecided: Sequence[str] = (), why: str = ""
) -> str:
    """Return what its end says, what it lacks, what it asks, or which effect was left open; nothing
    if there is nothing to say.

    Args:
        undecided: the effects about which a person has to decide before it goes on.
        why: what made its last owner leave it; shown for a thread that has not stopped in order.
    """
    doubt = doubt_about(undecided)
    if history.end is not None:
        return "; ".join(filter(None, (end_message(history.end), doubt)))
    if history.lacking:
        return "; ".join(filter(None, (_text_of(_last_line(data, _VOID), "message"), doubt)))
    if state == "waiting":
        return _text_of(_last_line(data, _WAIT), "question")
    if state == "unknown" and history.pending is not None:
        return "; ".join(
            filter(None, (doubt or f"{_begun(history.pending)} and may have been performed", why))
        )
    if state == "interrupted":
        begun = f"{_begun(history.open)} and has no outcome yet" if history.open is not None else ""
        return "; ".join(filter(None, (begun, why)))
    return ""


def doubt_about(undecided: Sequence[str]) -> str:
    """Return the words for effects that may have been performed; nothing for none."""
    if not undecided:
        return ""
    named = ", ".join(undecided[:MAX_NAMED]) + (
        f" and {len(undecided) - MAX_NAMED} more" if len(undecided) > MAX_NAMED else ""
    )
    return f"{named} {'was' if len(undecided) == 1 else 'were'} begun and may have been performed"


def end_message(end: Mapping[str, Any]) -> str:
    """Return the words of an end record."""
    if "message" in end:
        return str(end["message"])
    for holder in (end.get("result"), end.get("error")):
        if isinstance(holder, dict) and "message" in holder:
            return str(holder["message"])
    return ""


def _begun(pending: Pending) -> str:
    """Return words for an effect that was begun. A large one is in a blob, which is not read for
    that.
    """
    effect = decode(pending.effect) if pending.effect is not None else None
    label = (
        next((f" ({effect_label(kind, body)})" for kind, body in effect.items()), "")
        if isinstance(effect, dict)
        else ""
    )
    return f"step {pending.seq}{label} was begun"


def _last_line(data: bytes, mark: bytes) -> object:
    at = data.rfind(mark)
    return decode(data[data.rfind(b"\n", 0, at) + 1 : data.find(b"\n", at)])


def _text_of(record: object, key: str) -> str:
    return str(record.get(key) or "") if isinstance(record, dict) else ""
