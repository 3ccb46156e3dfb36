"""Consistency check of composite effects: each outcome against the lines of its sub-steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from uncaged_bundles.errors import NotFoundError

from ..door.effects import Handler, handled
from ..effect_kinds import handler_for
from ..journal import lines
from ..journal.blobs import Blobs
from ..journal.recover import History
from ..state.observe import parse_records

_KIND = re.compile(rb'\{"([a-z-]+)":')


def find_difference(history: History, data: bytes, blobs: Blobs) -> str | None:
    """Describe the first composite effect whose outcome differs from the lines of its sub-steps;
    return None if there is none.

    Args:
        data: the whole lines of the journal.
    """
    replaced = (
        int(history.start["forkFrom"]["seq"])
        if (history.start.get("forkFrom") or {}).get("instead")
        else 0
    )
    for handler, body, step, subs in _composite_steps(data, blobs):
        if (
            step["seq"] != replaced
            and "outcome" in step
            and (problem := handler.difference(body, step["outcome"], subs))
        ):
            return f"step {step['seq']} ({handler.kind}): {problem}"
    return None


def _composite_steps(
    data: bytes, blobs: Blobs
) -> Iterator[tuple[Handler, object, dict[str, Any], list[dict[str, Any]]]]:
    """Yield for each finished step of a composite kind: its handler, the effect's body, the step's
    record and those of its sub-steps.
    """
    intent = b""
    subs: list[bytes] = []
    for text in data.split(b"\n")[:-1]:
        line = text + b"\n"
        shape, _ = lines.shape_of(line)
        if shape == "intent":
            intent = line
        elif shape == "step" and lines.is_sub_step(line):
            subs.append(line)
        elif shape == "step":
            if intent and (found := _composite(intent, blobs)) is not None:
                [step, *parts] = parse_records(b"".join([line, *subs]), blobs)
                yield *found, step, parts
            intent, subs = b"", []


def _composite(intent: bytes, blobs: Blobs) -> tuple[Handler, object] | None:
    """Return handler and body of a composite effect, None for another. Nearly all intents are of
    another kind, so their bodies are not parsed.
    """
    if lines.blob_of(intent) is None:
        head = _KIND.match(lines.effect_of_intent(intent))
        if head is not None and _composite_handler(head[1].decode()) is None:
            return None
    [record] = parse_records(intent, blobs)
    [(kind, body)] = record["intent"].items()
    handler = _composite_handler(kind)
    return None if handler is None else (handler, handled(body))


def _composite_handler(kind: str) -> Handler | None:
    try:
        handler = handler_for(kind)
    except NotFoundError:
        return None
    return handler if handler.is_composite else None
