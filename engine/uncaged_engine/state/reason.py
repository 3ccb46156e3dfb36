"""A few words say why a thread is where it is, from its journal alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..journal.codec import decode
from ..journal.labels import effect_label
from ..journal.recover import History, Pending
from .states import State

_WAIT = b'"control":"wait"'
_VOID = b'"void":'


def reason(history: History, state: State, data: bytes, why: str = "") -> str:
    """Return what its end says, what it lacks, what it asks, or which effect was left open; nothing if there is nothing to say.

    Args:
        why: what made its last owner leave it; said of a thread that has not stopped in order.
    """
    if history.end is not None:
        return end_message(history.end)
    if history.lacking:
        return _said(_last_line(data, _VOID), "message")
    if state == "waiting":
        return _said(_last_line(data, _WAIT), "question")
    if state == "unknown" and history.pending is not None:
        return "; ".join(filter(None, (f"{_begun(history.pending)}, and nobody knows whether it was performed", why)))
    if state == "interrupted":
        begun = f"{_begun(history.open)} and has no outcome yet" if history.open is not None else ""
        return "; ".join(filter(None, (begun, why)))
    return ""


def end_message(end: Mapping[str, Any]) -> str:
    """Return the words of an end record."""
    if "message" in end:
        return str(end["message"])
    for holder in (end.get("result"), end.get("error")):
        if isinstance(holder, dict) and "message" in holder:
            return str(holder["message"])
    return ""


def _begun(pending: Pending) -> str:
    """A large effect stands in a blob, and is not read for a few words."""
    effect = decode(pending.effect) if pending.effect is not None else None
    label = next((f" ({effect_label(kind, body)})" for kind, body in effect.items()), "") if isinstance(effect, dict) else ""
    return f"step {pending.seq}{label} was begun"


def _last_line(data: bytes, mark: bytes) -> object:
    at = data.rfind(mark)
    return decode(data[data.rfind(b"\n", 0, at) + 1 : data.find(b"\n", at)])


def _said(record: object, key: str) -> str:
    return str(record.get(key) or "") if isinstance(record, dict) else ""
